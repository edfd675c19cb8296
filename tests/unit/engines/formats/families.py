"""Tiny tokenizers with the control tokens and the template shapes of well-known model families."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

CORPUS = [
    "You are a helpful assistant. List the files, then write the report to out.txt and check it.",
    '{"name": "bash", "arguments": {"command": "ls -la | grep data && cat notes.md"}}',
    "<function=bash>\n<parameter=command>\ncat <<'EOF'\nline one\nline two\nEOF\n</parameter>\n</function>",
    "def main() -> None:\n    for name, value in items.items():\n        print(name, value)\n\n\nmain()\n",
    "user\nassistant\nsystem\ntool\nerror: no such file or directory; exit code 1\n\nä ö ü — 日本語 🙂",
]

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

_QWEN_HEAD = """{%- if tools %}{{- '<|im_start|>system\\n' }}{%- if messages[0].role == 'system' %}
{{- messages[0].content + '\\n\\n' }}{%- endif %}{{- '# Tools\\n\\nFunctions:\\n<tools>' }}
{%- for tool in tools %}{{- '\\n' }}{{- tool | tojson }}{%- endfor %}{{- '\\n</tools>\\n' }}
{{- HOW }}{{- '<|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}{%- endif %}
{%- set ns = namespace(last=messages|length - 1, found=false) %}
{%- for message in messages[::-1] %}{%- if not ns.found and message.role == 'user'
 and not message.content.startswith('<tool_response>') %}
{%- set ns.found = true %}{%- set ns.last = messages|length - 1 - loop.index0 %}{%- endif %}{%- endfor %}
{%- for message in messages %}
{%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- elif message.role == 'assistant' %}
{%- set content = message.content %}{%- set reasoning = message.reasoning_content or '' %}
{%- if not reasoning and '</think>' in content %}
{%- set reasoning = content.split('</think>')[0].split('<think>')[-1].strip('\\n') %}
{%- set content = content.split('</think>')[-1].lstrip('\\n') %}{%- endif %}
{%- if loop.index0 > ns.last and (loop.last or reasoning) %}
{{- '<|im_start|>assistant\\n<think>\\n' + reasoning.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
{%- else %}{{- '<|im_start|>assistant\\n' + content }}{%- endif %}
CALLS
{{- '<|im_end|>\\n' }}
{%- elif message.role == 'tool' %}
{%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}
{{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{- '<|im_end|>\\n' }}{%- endif %}
{%- endif %}{%- endfor %}"""

QWEN3 = (
    _QWEN_HEAD.replace("HOW", '\'Call: <tool_call>\\n{"name": ..., "arguments": ...}\\n</tool_call>\'').replace(
        "CALLS",
        """{%- for call in message.tool_calls or [] %}{%- if not loop.first or content %}{{- '\\n' }}{%- endif %}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments if call.function.arguments is string else call.function.arguments | tojson }}
{{- '}\\n</tool_call>' }}{%- endfor %}""",
    )
    + """{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}"""
)

QWEN35 = (
    _QWEN_HEAD.replace("HOW", "'Call: <tool_call>\\n<function=name>\\n...</function>\\n</tool_call>'").replace(
        "CALLS",
        """{%- for call in message.tool_calls or [] %}{%- if not loop.first or content %}{{- '\\n\\n' }}{%- endif %}
{{- '<tool_call>\\n<function=' + call.function.name + '>\\n' }}
{%- for key, value in call.function.arguments | items %}
{{- '<parameter=' + key + '>\\n' }}{{- value if value is string else value | tojson }}{{- '\\n</parameter>\\n' }}
{%- endfor %}{{- '</function>\\n</tool_call>' }}{%- endfor %}""",
    )
    + "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n<think>\\n' }}{%- endif %}"
)

LLAMA3 = """{{- bos_token }}{%- if messages[0].role == 'system' %}{%- set system = messages[0].content | trim %}
{%- set messages = messages[1:] %}{%- else %}{%- set system = '' %}{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\n' }}{%- if tools %}{{- 'Environment: ipython\\n' }}{%- endif %}
{{- 'Today Date: 26 Jul 2024\\n\\n' }}
{%- if tools %}{{- 'You have access to these functions. Answer with JSON {"name": ..., "parameters": ...}.\\n\\n' }}
{%- for t in tools %}{{- t | tojson(indent=4) }}{{- '\\n\\n' }}{%- endfor %}{%- endif %}
{{- system }}{{- '<|eot_id|>' }}
{%- for message in messages %}
{%- if not (message.role == 'ipython' or message.role == 'tool' or message.tool_calls) %}
{{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' + message.content | trim + '<|eot_id|>' }}
{%- elif message.tool_calls %}
{%- if message.tool_calls | length != 1 %}{{- raise_exception('only single tool-calls at once') }}{%- endif %}
{%- set call = message.tool_calls[0].function %}
{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{{- '{"name": "' + call.name + '", ' }}{{- '"parameters": ' }}{{- call.arguments | tojson }}{{- '}' }}{{- '<|eot_id|>' }}
{%- else %}{{- '<|start_header_id|>ipython<|end_header_id|>\\n\\n' }}
{%- if message.content is mapping %}{{- message.content | tojson }}{%- else %}{{- message.content }}{%- endif %}
{{- '<|eot_id|>' }}{%- endif %}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}"""

MISTRAL = """{%- if messages[0].role == 'system' %}{%- set system = messages[0].content %}{%- set rest = messages[1:] %}
{%- else %}{%- set rest = messages %}{%- endif %}
{%- set ns = namespace(index=0, last_user=-1) %}
{%- for m in rest %}{%- if not (m.role == 'tool' or m.tool_calls) %}
{%- if (m.role == 'user') != (ns.index % 2 == 0) %}{{- raise_exception('roles must alternate') }}{%- endif %}
{%- set ns.index = ns.index + 1 %}{%- endif %}{%- if m.role == 'user' %}{%- set ns.last_user = loop.index0 %}{%- endif %}
{%- endfor %}{{- bos_token }}
{%- for m in rest %}
{%- if m.role == 'user' %}
{%- if tools and loop.index0 == ns.last_user %}{{- '[AVAILABLE_TOOLS]' }}{{- tools | tojson }}{{- '[/AVAILABLE_TOOLS]' }}
{%- endif %}{{- '[INST]' }}
{%- if system is defined and loop.index0 == ns.last_user %}{{- system + '\\n\\n' }}{%- endif %}
{{- m.content + '[/INST]' }}
{%- elif m.tool_calls %}{{- '[TOOL_CALLS][' }}
{%- for call in m.tool_calls %}{%- set out = call.function | tojson %}{{- out[:-1] }}
{%- if call.id | length != 9 %}{{- raise_exception('Tool call IDs should be 9 characters') }}{%- endif %}
{{- ', "id": "' + call.id + '"}' }}{%- if not loop.last %}{{- ', ' }}{%- endif %}{%- endfor %}{{- ']' + eos_token }}
{%- elif m.role == 'assistant' %}{{- m.content + eos_token }}
{%- elif m.role == 'tool' %}
{{- '[TOOL_RESULTS]{"content": ' + m.content | string | tojson + ', "call_id": "' + m.tool_call_id + '"}[/TOOL_RESULTS]' }}
{%- else %}{{- raise_exception('unknown role') }}{%- endif %}{%- endfor %}"""

GLM = """{{- '[gMASK]<sop>' }}{%- if tools %}{{- '<|system|>\\n# Tools\\n<tools>\\n' }}
{%- for tool in tools %}{{- tool | tojson }}{{- '\\n' }}{%- endfor %}{{- '</tools>' }}{%- endif %}
{%- set ns = namespace(last=-1) %}{%- for m in messages %}{%- if m.role == 'user' %}
{%- set ns.last = loop.index0 %}{%- endif %}{%- endfor %}
{%- for m in messages %}
{%- if m.role == 'user' %}{{- '<|user|>\\n' + m.content }}
{%- elif m.role == 'assistant' %}{{- '<|assistant|>' }}
{%- if loop.index0 > ns.last and m.reasoning_content %}{{- '\\n<think>' + m.reasoning_content.strip() + '</think>' }}
{%- else %}{{- '\\n<think></think>' }}{%- endif %}
{%- if m.content.strip() %}{{- '\\n' + m.content.strip() }}{%- endif %}
{%- for call in m.tool_calls or [] %}{{- '\\n<tool_call>' + call.function.name + '\\n' }}
{%- for k, v in call.function.arguments.items() %}{{- '<arg_key>' + k + '</arg_key>\\n<arg_value>' }}
{{- v if v is string else v | tojson }}{{- '</arg_value>\\n' }}{%- endfor %}{{- '</tool_call>' }}{%- endfor %}
{%- elif m.role == 'tool' %}{%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{- '<|observation|>' }}
{%- endif %}{{- '\\n<tool_response>\\n' + m.content + '\\n</tool_response>' }}
{%- elif m.role == 'system' %}{{- '<|system|>\\n' + m.content }}{%- endif %}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|assistant|>' }}{%- endif %}"""

DEEPSEEK = """{%- set ns = namespace(system='', outputs=false) %}
{%- for m in messages %}{%- if m.role == 'system' %}{%- set ns.system = ns.system + m.content %}{%- endif %}{%- endfor %}
{{- bos_token + ns.system }}
{%- if tools %}{{- '\\n\\n## Tools\\n' }}{%- for t in tools %}{{- t.function | tojson }}{{- '\\n' }}{%- endfor %}{%- endif %}
{%- for m in messages %}
{%- if m.role == 'user' %}{{- '<｜User｜>' + m.content }}
{%- elif m.role == 'assistant' %}
{%- if not ns.outputs %}{{- '<｜Assistant｜>' }}{%- else %}{{- '<｜tool▁outputs▁end｜>' }}{%- set ns.outputs = false %}{%- endif %}
{{- m.content.split('</think>')[-1] }}
{%- if m.tool_calls %}{{- '<｜tool▁calls▁begin｜>' }}
{%- for call in m.tool_calls %}{{- '<｜tool▁call▁begin｜>function<｜tool▁sep｜>' + call.function.name + '\\n```json\\n' }}
{{- call.function.arguments + '\\n```<｜tool▁call▁end｜>' }}{%- endfor %}{{- '<｜tool▁calls▁end｜>' }}{%- endif %}
{{- eos_token }}
{%- elif m.role == 'tool' %}{%- if not ns.outputs %}{{- '<｜tool▁outputs▁begin｜>' }}{%- set ns.outputs = true %}{%- endif %}
{{- '<｜tool▁output▁begin｜>' + m.content + '<｜tool▁output▁end｜>' }}{%- endif %}{%- endfor %}
{%- if ns.outputs %}{{- '<｜tool▁outputs▁end｜>' }}
{%- elif add_generation_prompt %}{{- '<｜Assistant｜><think>\\n' }}{%- endif %}"""

GEMMA = """{{- bos_token }}{%- if messages[0].role == 'system' %}{{- raise_exception('System role not supported') }}{%- endif %}
{%- for m in messages %}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{- raise_exception('roles must alternate') }}{%- endif %}
{%- set role = 'model' if m.role == 'assistant' else m.role %}
{{- '<start_of_turn>' + role + '\\n' + m.content | trim + '<end_of_turn>\\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<start_of_turn>model\\n' }}{%- endif %}"""


@dataclass(frozen=True)
class Family:
    """A template with its control tokens; `added` are in the vocabulary but not special, as some families have them."""

    template: str
    special: Sequence[str]
    added: Sequence[str] = ()
    sentencepiece: bool = False
    bos: str | None = None
    eos: str = ""
    native: bool = True


_QWEN_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_QWEN_ADDED = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
_DEEPSEEK_TOOLS = tuple(
    f"<｜tool▁{name}｜>"
    for name in (
        "calls▁begin",
        "calls▁end",
        "call▁begin",
        "call▁end",
        "sep",
        "outputs▁begin",
        "outputs▁end",
        "output▁begin",
        "output▁end",
    )
)

FAMILIES = {
    "chatml": Family(CHATML, _QWEN_SPECIAL, eos="<|im_end|>", native=False),
    "qwen3": Family(QWEN3, _QWEN_SPECIAL, _QWEN_ADDED, eos="<|im_end|>"),
    "qwen3.5": Family(QWEN35, _QWEN_SPECIAL, _QWEN_ADDED, eos="<|im_end|>"),
    "llama-3": Family(
        LLAMA3,
        ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>", "<|python_tag|>"),
        bos="<|begin_of_text|>",
        eos="<|eot_id|>",
    ),
    "mistral": Family(
        MISTRAL,
        ("<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]")
        + ("[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
        sentencepiece=True,
        bos="<s>",
        eos="</s>",
    ),
    "glm": Family(
        GLM,
        ("<|endoftext|>", "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"),
        ("<think>", "</think>", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
        + ("<tool_response>", "</tool_response>"),
        eos="<|endoftext|>",
    ),
    "deepseek": Family(
        DEEPSEEK,
        ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
        ("<｜User｜>", "<｜Assistant｜>", "<think>", "</think>", *_DEEPSEEK_TOOLS),
        bos="<｜begin▁of▁sentence｜>",
        eos="<｜end▁of▁sentence｜>",
    ),
    "gemma": Family(
        GEMMA,
        ("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"),
        sentencepiece=True,
        bos="<bos>",
        eos="<eos>",
        native=False,
    ),
}


@cache
def tokenizer_of(name: str) -> Any:
    """The tokenizer of a family; made once, so do not change it."""
    family = FAMILIES[name]
    unknown = ["<unk>"] if family.sentencepiece else []
    tokenizer = Tokenizer(models.BPE(unk_token=unknown[0] if unknown else None, byte_fallback=family.sentencepiece))
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    if family.sentencepiece:
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
        tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
        unknown += [f"<0x{byte:02X}>" for byte in range(256)]
        alphabet = []
    else:
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=900, special_tokens=unknown, initial_alphabet=alphabet, show_progress=False, max_token_length=12
    )
    tokenizer.train_from_iterator(CORPUS * 3, trainer)
    tokenizer.add_special_tokens([AddedToken(text, normalized=False) for text in family.special])
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in family.added])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=family.bos, eos_token=family.eos)
    fast.chat_template = family.template
    return fast
