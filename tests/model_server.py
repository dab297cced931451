"""A real HTTP server with OpenAI's chat and text completions, and faults before its answers."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import accumulate
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

# A token and the natural logarithm of its probability.
Token = tuple[str, float]
# Reply to a request: the text, why it ended, numbers of tokens of prompt and text, and the text's
# tokens, or None if the server has no probabilities.
Reply = tuple[str, str, int, int, list[Token] | None]


# Field of the request's body that each path requires.
_PATHS = {"/v1/chat/completions": "messages", "/v1/completions": "prompt"}


class ModelServer:
    """Answers ``POST /v1/chat/completions`` and ``/v1/completions``; use as a context manager.

    Args:
        model: folder of a causal language model, or a function of the request's body that gives a
            text, or a text and its tokens.

    Attributes:
        faults: taken from the left, one per request, before any answer; ``None`` for no fault.
        asked: the bodies of all requests, including those with a fault.
        answered: the bodies of answered requests.
        paths: the path of each request.
        keys: the ``Authorization`` headers.
        most: largest number of concurrent requests.
    """

    def __init__(self, model: Path | Callable[[dict], str | tuple[str, list[Token]] | Reply]):
        self.reply = model if callable(model) else _sampler(model)
        self.faults: deque[str | None] = deque()
        self.asked: list[dict] = []
        self.answered: list[dict] = []
        self.paths: list[str] = []
        self.keys: list[str] = []
        self.busy = self.most = 0
        self.lock = threading.Lock()

    def __enter__(self) -> ModelServer:
        handler = type("Handler", (_Handler,), {"owner": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        self.die()

    def die(self) -> None:
        """Stop listening; open requests get no answer."""
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    owner: ModelServer

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        owner = self.owner
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with owner.lock:
            owner.asked.append(body)
            owner.paths.append(self.path)
            owner.keys.append(self.headers["authorization"])
            fault = owner.faults.popleft() if owner.faults else None
            owner.busy += 1
            owner.most = max(owner.most, owner.busy)
        try:
            if fault:
                self._fault(fault, body)
            elif self.path not in _PATHS:
                self._send(404, {"error": {"message": f"no {self.path}", "type": "x"}})
            elif _PATHS[self.path] not in body:
                # As OpenAI does if a model has only the other endpoint.
                self._send(400, {"error": {"message": f"no {_PATHS[self.path]}", "type": "x"}})
            else:
                self._send(200, self._completion(body))
        finally:
            with owner.lock:
                owner.busy -= 1

    def _completion(self, body: dict, **message: object) -> dict:
        output = self.owner.reply(body)
        text, *rest = output if isinstance(output, tuple) else (output, None)
        reply: Reply = (text, "stop", 7, 3, *rest) if len(rest) == 1 else (text, *rest)
        self.owner.answered.append(body)
        chat = "messages" in body
        content = {"message": {"role": "assistant", "content": reply[0], **message}}
        choice = {"index": 0} | (content if chat else {"text": reply[0]})
        shape = _logprobs if chat else _text_logprobs
        choice["logprobs"] = shape(reply[4]) if body.get("logprobs") and reply[4] else None
        usage = {"prompt_tokens": reply[2], "completion_tokens": reply[3]}
        return {
            "id": "x",
            "object": "chat.completion" if chat else "text_completion",
            "created": 0,
            "model": body["model"],
            "choices": [choice | {"finish_reason": reply[1]}],
            "usage": usage | {"total_tokens": reply[2] + reply[3]},
        }

    def _send(self, status: int, value: object, **headers: str) -> None:
        raw = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        names = {"content_type": "application/json", "content_length": str(len(raw))} | headers
        for name, text in names.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        self.wfile.write(raw)

    def _fault(self, fault: str, body: dict) -> None:
        kind, _, detail = fault.partition(" ")
        if kind.isdigit():
            code, _, text = detail.partition("|")
            error = {"message": text or "not now", "type": "x", "code": code or None}
            self._send(int(kind), {"error": error})
        elif kind == "retry-after":
            self._send(429, {"error": {"message": "slower"}}, retry_after=detail)
        elif kind == "cut":
            self._send(200, b'{"id": "x", "choices": [{"index": 0, "mess')
        elif kind == "short":
            self._send(200, b'{"id": "x", "cho', content_length="500")
            self.close_connection = True
        elif kind == "html":
            self._send(200, b"<html>Bad gateway</html>", content_type="text/html")
        elif kind == "drop":
            self.close_connection = True
            self.connection.close()
        elif kind == "slow":
            self.send_response(200)
            self.end_headers()
            for _ in range(40):
                self.wfile.write(b" ")
                time.sleep(0.05)
        elif kind == "empty":
            self._send(200, {"id": "x", "object": "chat.completion", "choices": []})
        elif kind == "refusal":
            self._send(200, self._completion(body, refusal="I cannot."))
        elif kind == "filter":
            self._send(200, _ended(self._completion(body), "content_filter"))
        elif kind == "length":
            self._send(200, _ended(self._completion(body), "length"))
        elif kind == "logprobs":
            completion = self._completion(body)
            completion["choices"][0]["logprobs"] = json.loads(detail)
            self._send(200, completion)
        elif kind == "usage":
            self._send(200, self._completion(body) | {"usage": json.loads(detail)})
        elif kind == "content":
            self._send(200, self._completion(body, content=json.loads(detail)))
        elif kind == "ended":
            self._send(200, _ended(self._completion(body), detail))
        elif kind == "body":
            status, _, text = detail.partition(" ")
            self._send(int(status), text.encode())
        else:
            raise AssertionError(fault)


def _logprobs(tokens: list[Token]) -> dict:
    """Probabilities in the form of the chat API."""
    content = [
        {"token": text, "logprob": value, "bytes": list(text.encode()), "top_logprobs": []}
        for text, value in tokens
    ]
    return {"content": content, "refusal": None}


def _text_logprobs(tokens: list[Token]) -> dict:
    """Probabilities in the form of the completions API."""
    offsets = list(accumulate((len(text) for text, _ in tokens), initial=0))[:-1]
    return {
        "tokens": [text for text, _ in tokens],
        "token_logprobs": [value for _, value in tokens],
        "top_logprobs": [{text: value} for text, value in tokens],
        "text_offset": offsets,
    }


def prompt_of(body: dict) -> str:
    """Return the prompt of a request to either endpoint."""
    return body["prompt"] if "prompt" in body else body["messages"][-1]["content"]


def _ended(completion: dict, reason: str) -> dict:
    completion["choices"][0]["finish_reason"] = reason
    return completion


def _sampler(folder: Path) -> Callable[[dict], Reply]:
    """Texts of a model on disk, by the request's own seed."""
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    lock = threading.Lock()

    def reply(body: dict) -> Reply:
        prompt = "\n".join(m["content"] for m in body["messages"]) if "messages" in body else ""
        prompt = body.get("prompt", prompt)
        ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
        with lock:
            torch.manual_seed(body.get("seed", 0))
            drawn = {"do_sample": bool(body["temperature"]), "max_new_tokens": body["max_tokens"]}
            if drawn["do_sample"]:
                drawn |= {"temperature": body["temperature"], "top_p": body["top_p"], "top_k": 0}
            drawn |= {"return_dict_in_generate": True, "output_logits": True}
            out = model.generate(ids, attention_mask=torch.ones_like(ids), **drawn)
        tokens = out.sequences[0, ids.shape[1] :]
        whole = bool(tokens[-1] == tokenizer.eos_token_id)
        text = tokenizer.decode(tokens, skip_special_tokens=True)
        logs = [logits[0].log_softmax(-1) for logits in out.logits]  # before temperature and top_p
        text_tokens = [
            (tokenizer.decode([token], skip_special_tokens=True), float(log[token]))
            for token, log in zip(tokens.tolist(), logs, strict=True)
        ]
        text_tokens = text_tokens[:-1] if whole else text_tokens
        return text, "stop" if whole else "length", ids.shape[1], len(tokens), text_tokens

    return reply
