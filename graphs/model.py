"""The chat model of the programs and served graphs: a real one by name, or a stand-in."""

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from todo_tools.testing import ScriptedChatModel, call, checklist_model, turn
from todo_tools.transcript import is_from_user

STAND_IN = "stand-in"
"""The name of the model that needs no key and no network."""


class ModelError(ValueError):
    """The chat model cannot be created or does not answer; the message is one line."""

    def __init__(self, name: str, error: BaseException) -> None:
        reason = " ".join(str(error).split())
        super().__init__(f"model {name!r}: {reason[:_REASON_CHARACTERS]}")


def chat_model(name: str | None, *, command_tool: str = "shell") -> BaseChatModel:
    """Create the chat model.

    Args:
        name: `provider:name` as for `init_chat_model`, or `stand-in`, which `None` means too.
        command_tool: The tool that the stand-in runs commands with.

    Returns:
        The model.

    Raises:
        ModelError: The model cannot be created, for example because its package or key is missing.
    """
    if name is None or is_stand_in(name):
        return checklist_model(shell=command_tool)
    try:
        return init_chat_model(name)
    except Exception as error:  # each provider package raises its own error for a missing key
        raise ModelError(name, error) from error


def is_stand_in(name: str | None) -> bool:
    """Whether a name means the stand-in."""
    return not name or name == STAND_IN


def notes_stand_in() -> ScriptedChatModel:
    """A stand-in with notes: `note: ...` adds a note, and any other text lists the notes."""

    def rule(prompt: list[BaseMessage]) -> AIMessage:
        last = prompt[-1]
        if not is_from_user(last):
            return turn(last.text)
        if last.text.startswith("note: "):
            return turn("", call("notes", action="add", text=last.text.removeprefix("note: ")))
        return turn("", call("notes", action="list"))

    return ScriptedChatModel(script=rule)


_REASON_CHARACTERS = 300
