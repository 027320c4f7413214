"""Runs a quickstart of a framework with a scripted model, which calls `refund` once and repeats its result.

quickstart_model.py FRAMEWORK    with the script on standard input, and the order in ORDER
"""

import json
import os
import re
import stat
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

ARGUMENTS = {"order": os.environ["ORDER"], "amount": 40}
# As the ids of real models, it is another one in each run.
CALL = f"call-{uuid.uuid4()}"


def langgraph() -> Any:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, ToolMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Scripted(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "scripted"

        def bind_tools(self, tools: Any, **options: Any) -> BaseChatModel:
            return self

        def _generate(self, messages: Any, *rest: Any, **options: Any) -> ChatResult:
            last = messages[-1]
            call = {"name": "refund", "args": ARGUMENTS, "id": CALL, "type": "tool_call"}
            said = isinstance(last, ToolMessage)
            message = AIMessage(content=last.text) if said else AIMessage(content="", tool_calls=[call])
            return ChatResult(generations=[ChatGeneration(message=message)])

    return Scripted()


def pydantic_ai() -> Any:
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    def reply(messages: Any, info: Any) -> ModelResponse:
        results = [it.model_response_str() for it in messages[-1].parts if isinstance(it, ToolReturnPart)]
        return ModelResponse(parts=[TextPart(results[0]) if results else ToolCallPart("refund", ARGUMENTS, CALL)])

    return FunctionModel(reply)


def openai_agents() -> Any:
    from agents import Model, ModelResponse, Usage, set_tracing_disabled
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)

    def reply(items: Any) -> Any:
        results = [it["output"] for it in items if isinstance(it, dict) and it.get("type") == "function_call_output"]
        if not results:
            arguments = json.dumps(ARGUMENTS)
            return ResponseFunctionToolCall(name="refund", arguments=arguments, call_id=CALL, type="function_call")
        content = [ResponseOutputText(text=results[0], type="output_text", annotations=[])]
        return ResponseOutputMessage(id="m-1", role="assistant", type="message", status="completed", content=content)

    class Scripted(Model):
        async def get_response(self, *rest: Any, **options: Any) -> ModelResponse:
            return ModelResponse(output=[reply(options["input"])], usage=Usage(), response_id=None)

        def stream_response(self, *rest: Any, **options: Any) -> Any:
            raise NotImplementedError

    return Scripted()


def adk() -> Any:
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.genai import types

    class Scripted(BaseLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            parts = llm_request.contents[-1].parts
            results = [it.function_response.response for it in parts if it.function_response]
            call = types.Part(function_call=types.FunctionCall(id=CALL, name="refund", args=ARGUMENTS))
            part = types.Part(text=" ".join(map(str, results[0].values()))) if results else call
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    return Scripted(model="scripted")


def claude_agent_sdk() -> None:
    """Puts the stand-in of the command line on the path."""
    folder = Path(tempfile.mkdtemp())
    # `claude_cli.py` names the server `crm` and reads the calls from the prompt. It needs a session.
    program = f'#!/bin/sh\nexec {sys.executable} {Path(__file__).with_name("claude_cli.py")} --session-id={CALL} "$@"\n'
    (folder / "claude").write_text(program)
    (folder / "claude").chmod(stat.S_IRWXU)
    os.environ.update(PATH=f"{folder}:{os.environ['PATH']}", CLAUDE_CONFIG_DIR=str(folder))


def agent_framework() -> Any:
    from agent_framework import (
        BaseChatClient,
        ChatResponse,
        Content,
        FunctionInvocationLayer,
        Message,
    )

    class Scripted(FunctionInvocationLayer, BaseChatClient):
        def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **rest: Any) -> Any:
            async def reply() -> ChatResponse:
                results = [it for it in messages[-1].contents if it.type == "function_result"]
                call = Content.from_function_call(call_id=CALL, name="refund", arguments=ARGUMENTS)
                content = Content.from_text(str(results[0].result)) if results else call
                return ChatResponse(messages=[Message(role="assistant", contents=[content])])

            return reply()

    return Scripted()


def crewai() -> Any:
    from crewai import BaseLLM

    class Scripted(BaseLLM):
        def call(self, messages: Any, *rest: Any, **options: Any) -> str:
            # The framework adds the result of a tool to the answer of the model.
            answers = [it["content"] for it in messages if it["role"] == "assistant"]
            if answers:
                return f"Thought: done\nFinal Answer: {answers[-1].rpartition('Observation:')[2].strip()}"
            return f"Thought: call it\nAction: refund\nAction Input: {json.dumps(ARGUMENTS)}"

    return Scripted(model="scripted")


SCRIPTED = {
    "langgraph": langgraph,
    "deep-agents": langgraph,
    "pydantic-ai": pydantic_ai,
    "openai-agents": openai_agents,
    "adk": adk,
    "claude-agent-sdk": claude_agent_sdk,
    "agent-framework": agent_framework,
    "crewai": crewai,
}


def main() -> None:
    name = sys.argv[1]
    given = {"model": SCRIPTED[name](), "prompt": json.dumps([{"tool": "refund", "arguments": ARGUMENTS}])}
    # Only the model is replaced. The command line of Claude reads the calls from the prompt.
    script, replaced = re.subn(r"(?m)^(model|prompt) = .*$", r"\1 = given['\1']", sys.stdin.read())
    assert replaced == 1
    exec(compile(script, name, "exec", dont_inherit=True), {"__name__": "__main__", "given": given})


if __name__ == "__main__":
    main()
