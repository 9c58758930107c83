"""The rules of APIs and chat templates for the order of messages.

Each takes messages in the form of the OpenAI API, which servers pass to a template.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from mistral_common.exceptions import MistralCommonException
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.validator import MistralRequestValidatorV13, ValidationMode

Message = Mapping[str, Any]


def is_alternating(messages: Sequence[Message]) -> bool:
    """Whether user messages and answers alternate, ignoring tool calls and their results.

    The rule of the `chat_template.jinja` that Mistral publishes on Hugging Face with
    Ministral 3 and Devstral Small 2: they raise an error for any other order. Perplexity's API
    refuses two user messages in a row with much the same words.
    """
    after_system = messages[1:] if messages and messages[0]["role"] == "system" else messages
    counted = [message["role"] for message in after_system if _is_counted(message)]
    return all((role == "user") == (at % 2 == 0) for at, role in enumerate(counted))


def _is_counted(message: Message) -> bool:
    if message["role"] == "assistant":
        return not message.get("tool_calls")
    return bool(message["role"] == "user")


def is_answered(messages: Sequence[Message]) -> bool:
    """Whether the results of an answer's tool calls, and only those, come directly after it.

    OpenAI's and Anthropic's APIs refuse anything else.
    """
    waiting = set[str]()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return False
            waiting.remove(message["tool_call_id"])
        elif waiting:
            return False
        waiting |= {made["id"] for made in message.get("tool_calls") or []}
    return not waiting


def mistral_refusal(messages: Sequence[Message]) -> str | None:
    """The error of Mistral's own validator about the messages of a request, if any.

    Releases after 1.11.0 accept a user message after a tool result; older releases, which some
    servers use, do not.
    """
    validator = MistralRequestValidatorV13(mode=ValidationMode.serving)
    plain = [dict(message) for message in messages]
    request = ChatCompletionRequest.from_openai(messages=plain, model="any")
    try:
        validator.validate_request(request)
    except MistralCommonException as error:
        return str(error)
    return None


def with_reasoning(messages: Sequence[Message]) -> list[int]:
    """The indices of the model's answers that keep their reasoning in Qwen3's template.

    The rule of the chat template in the `tokenizer_config.json` of Qwen3: reasoning is sent back
    only for the answers after the last query. That is the last user message whose content is a
    string and not a tool's result in `<tool_response>` tags; without one it is the last message.
    """
    queries = [at for at, message in enumerate(messages) if _is_query(message)]
    last_query = queries[-1] if queries else len(messages) - 1
    answers = [at for at, message in enumerate(messages) if message["role"] == "assistant"]
    return [number for number, at in enumerate(answers) if at > last_query]


def _is_query(message: Message) -> bool:
    content = message.get("content")
    if message["role"] != "user" or not isinstance(content, str):
        return False
    return not (content.startswith("<tool_response>") and content.endswith("</tool_response>"))
