type Todo = { content: string; status: "pending" | "in_progress" | "completed"; abandoned?: boolean };

const LOOKS = {
  pending: ["–", {}],
  in_progress: ["●", { color: "#b45309", fontWeight: 600 }],
  completed: ["✓", { color: "#15803d" }],
  abandoned: ["✗", { color: "#71717a", textDecoration: "line-through" }],
} as const;

function Todos({ todos }: { todos: Todo[] }) {
  const finished = todos.filter((todo) => todo.status === "completed").length;
  return <section aria-label="Todos" style={{ border: "1px solid #d4d4d8", borderRadius: 8, padding: "8px 16px" }}>
    <div>{finished} of {todos.length} finished</div>
    <ul style={{ listStyle: "none", margin: 0, padding: 0 }}>{todos.map(({ content, status, abandoned }, index) => {
      const [mark, style] = LOOKS[abandoned ? "abandoned" : status];
      return <li key={index} style={style}>{mark} {content}</li>;
    })}</ul>
  </section>;
}

export default { todos: Todos };
