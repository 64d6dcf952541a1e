"""An LM in a package of its own, as CONTRIBUTING.md shows it: it answers every field with the end of its prompt."""

import json
import re

from dspy import lm15

from archehr.program.lm import Backend, LMSettings, in_process, prompt_parts


class Echo:
    supported_params = frozenset({"temperature"})

    def complete(self, request: lm15.Request) -> lm15.Response:
        prompt = prompt_parts(request)[-1][1]
        fields = re.findall(r"`(\w+)`", prompt)
        reply = lm15.Message.assistant([lm15.TextPart(json.dumps(dict.fromkeys(fields, prompt[:40])))])
        used = lm15.Usage(input_tokens=len(prompt) // 4, output_tokens=10)
        return lm15.Response(id=None, model=request.model, message=reply, finish_reason="stop", usage=used)


def backend(asked: LMSettings) -> Backend:
    return in_process(Echo())
