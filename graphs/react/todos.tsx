import type { Message } from "@langchain/langgraph-sdk";
import { useStream } from "@langchain/langgraph-sdk/react";
import { useEffect, useRef, useState } from "react";
import { createRoot } from "react-dom/client";

type Todo = { content: string; status: "pending" | "in_progress" | "completed"; abandoned?: boolean };
type State = { messages: Message[]; todos?: Todo[]; todo_outcome?: string | null };
type Event = { type: string; outcome?: string | null };
type Block = { type: string; text?: string };
type Question = { action_requests: { name: string }[] };

const MARKS = { pending: "–", in_progress: "●", completed: "✓", abandoned: "✗" };
const KEPT = { onDisconnect: "continue", streamResumable: true } as const; // the run goes on if the page is closed
const page = new URLSearchParams(location.search);
const textOf = (content: string | Block[]) => // some models answer in blocks
  typeof content === "string" ? content : content.map((block) => block.type === "text" ? block.text : "").join("");

function Todos() {
  const [text, setText] = useState("");
  const sent = useRef("");
  const followed = useRef(!page.get("thread"));
  const [outcome, setOutcome] = useState<string | null>();
  const [threadId, setThreadId] = useState(page.get("thread"));
  const keep = (id: string) => (setThreadId(id), page.set("thread", id), history.replaceState(null, "", `?${page}`));
  const { values, messages, interrupt, isLoading, error, submit, client, joinStream, isThreadLoading } = useStream<
    State, { InterruptType: Question; CustomEventType: Event }
  >({
    apiUrl: page.get("server") ?? "http://127.0.0.1:2024", assistantId: page.get("graph") ?? "until_done",
    threadId, onThreadId: keep,
    onFinish: () => {}, // or it does not read the thread again, and an old question comes back after a reload
    onCreated: () => { sent.current = ""; },
    onError: () => {
      const lost = sent.current; // what was not sent
      sent.current = "";
      setText((typed) => [lost, typed].filter(Boolean).join("\n"));
    },
    onCustomEvent: (event) => { if (event.type === "todo_loop") setOutcome(event.outcome); },
  });
  useEffect(() => { // follow a run that began before the page was opened, also in another tab
    if (!threadId || isThreadLoading || followed.current) return; // before, the stream would hide the list
    followed.current = true;
    client.runs.list(threadId).then((runs) => {
      const run = runs.findLast(({ status }) => status === "pending" || status === "running");
      if (run) joinStream(run.run_id);
    }).catch(console.error);
  }, [isThreadLoading]);
  const todos = values.todos ?? [];
  const finished = todos.filter((todo) => todo.status === "completed").length;
  const answers = messages.filter((message) => message.type === "ai").map(({ content }) => textOf(content));
  const ended = outcome ?? values.todo_outcome; // after a reload it is in the state
  const state = error ? String(error) : isLoading ? "working" : interrupt?.value ? "waiting" : ended;
  // A second click is sent when the first run has ended. It names its question, so it answers no later one.
  const resume = (reply: boolean) => submit(undefined, { command: { resume: { [interrupt!.id!]: reply } }, ...KEPT });
  return <>
    <h1>Todos</h1>
    <ul>{todos.map(({ content, status, abandoned }, index) => {
      const shown = abandoned ? "abandoned" : status;
      return <li key={index} className={shown}>{MARKS[shown]} {content}</li>;
    })}</ul>
    <p role="status">{finished} of {todos.length} finished{state && `, ${state}`}</p>
    <p>{answers.findLast(Boolean)}</p>
    {interrupt?.value && <p role="alert">{interrupt.value.action_requests[0].name}{" "}
      <button disabled={isLoading} onClick={() => resume(true)}>Yes</button>{" "}
      <button disabled={isLoading} onClick={() => resume(false)}>No</button></p>}
    <form onSubmit={(event) => {
      event.preventDefault();
      sent.current = text;
      setText("");
      submit({ messages: [{ type: "human", content: text }] }, KEPT);
    }}><textarea value={text} onChange={(event) => setText(event.target.value)} rows={2} placeholder="message..." />
      <button disabled={!text || isLoading}>Send</button></form>
  </>;
}

createRoot(document.getElementById("root")!).render(<Todos />);
