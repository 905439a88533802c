"""The model of a row: its numbers, what a public name adds to them, and its FLOPs and parameters.

    shape, assumed = find(row)        # Shape, or Unknown is raised with what is missing
    shape.parameters(), shape.step_flops(sequence, sequences, recompute=False)

Public shapes are facts of the models' own config.json or paper; a row's own columns come first.
"""

import re
from dataclasses import dataclass


class Unknown(Exception):
    """A row does not state enough, or something that the model cannot hold: str() says what."""


@dataclass
class Shape:
    layers: int = 0
    hidden: int = 0
    heads: int = 0
    kv_heads: int = 0
    head_size: int = 0
    ffn: int = 0
    vocab: int = 0
    gated: bool = False
    tied: bool = True
    encoder: bool = False
    experts: int = 0
    experts_per_token: int = 0
    expert_ffn: int = 0
    positions: int = 0  # learned
    flops_per_sample: float = 0  # of no transformer: forward and backward
    activations: float = 0  # elements kept of a sample
    parameter_count: float = 0
    preset: str = ""  # of the program, where its numbers do not make the model (latent attention, experts beside dense layers)
    active: float = 0  # of a preset: parameters that a token passes

    @property
    def transformer(self):
        return self.flops_per_sample == 0

    def layer_weights(self, active=False):
        """Elements of a layer's matrices; of an MoE those of the experts a token goes through."""
        attention = self.hidden * self.head_size * (2 * self.heads + 2 * self.kv_heads)
        matrices = 3 if self.gated else 2
        if self.experts:
            count = self.experts_per_token if active else self.experts
            return attention + count * matrices * self.hidden * (self.expert_ffn or self.ffn)
        return attention + matrices * self.hidden * self.ffn

    def parameters(self):
        if not self.transformer or self.preset:
            return self.parameter_count
        embeddings = self.vocab * self.hidden * (1 if self.tied else 2) + self.positions * self.hidden
        return self.layers * self.layer_weights() + embeddings

    def forward_flops(self, sequence):
        """Of the layers and of the output layer, per token, full (not causal) attention: the
        convention of Megatron-LM, PaLM and nearly all published TFLOP/s."""
        if self.preset:
            return 2 * (self.active - self.vocab * self.hidden), 2 * self.hidden * self.vocab
        layers = self.layers * (2 * self.layer_weights(active=True)
                                + 4 * sequence * self.heads * self.head_size)
        return layers, 2 * self.hidden * self.vocab

    def step_flops(self, sequence, sequences, recompute=False):
        if not self.transformer:
            return self.flops_per_sample * sequences
        layers, head = self.forward_flops(sequence)
        return sequences * sequence * ((4 if recompute else 3) * layers + 3 * head)


def llama(layers, hidden, heads, kv, ffn, vocab, **more):
    return dict(layers=layers, hidden=hidden, heads=heads, kv_heads=kv, ffn=ffn, vocab=vocab,
                gated=True, tied=False, **more)


def gpt(layers, hidden, heads, vocab=50257, **more):
    return dict(layers=layers, hidden=hidden, heads=heads, kv_heads=heads, ffn=4 * hidden,
                vocab=vocab, gated=False, tied=True, **more)


def bert(layers, hidden, heads):
    return dict(gpt(layers, hidden, heads, 30522), encoder=True, positions=512)


# Names are matched in lower case with everything but letters, digits and dots as one space; the first wins.
PUBLIC = [
    # families of one size that a name fixes
    (r"llama ?(2|v2)? ?7b|llama ?7b|llama1 7b|vicuna 7b", llama(32, 4096, 32, 32, 11008, 32000)),
    (r"llama ?(1|2|v2)? ?13b|vicuna 13b", llama(40, 5120, 40, 40, 13824, 32000)),
    (r"llama ?1? ?(30b|33b|32\.5b)", llama(60, 6656, 52, 52, 17920, 32000)),
    (r"(code)?llama ?[12]? ?34b", llama(48, 8192, 64, 8, 22016, 32000)),
    (r"llama ?1? ?65b", llama(80, 8192, 64, 64, 22016, 32000)),
    (r"llama ?2 ?70b", llama(80, 8192, 64, 8, 28672, 32000)),
    (r"llama ?3(\.[013])? ?8b", llama(32, 4096, 32, 8, 14336, 128256)),
    (r"llama ?3(\.[0123])? ?70b", llama(80, 8192, 64, 8, 28672, 128256)),
    (r"llama ?3(\.1)? ?405b", llama(126, 16384, 128, 8, 53248, 128256)),
    (r"llama ?3\.2 ?1b", dict(llama(16, 2048, 32, 8, 8192, 128256), tied=True)),
    (r"llama ?3\.2 ?3b", dict(llama(28, 3072, 24, 8, 8192, 128256), tied=True)),
    (r"tiny ?llama", llama(22, 2048, 32, 4, 5632, 32000)),
    (r"mistral ?(nemo ?)?12b", dict(llama(40, 5120, 32, 8, 14336, 131072), head_size=128)),
    (r"mistral|zephyr ?7b", llama(32, 4096, 32, 8, 14336, 32000)),
    (r"mixtral ?8x ?7b|mixtral$", dict(llama(32, 4096, 32, 8, 14336, 32000), experts=8, experts_per_token=2)),
    (r"mixtral ?8x ?22b", dict(llama(56, 6144, 48, 8, 16384, 32768), experts=8, experts_per_token=2)),
    (r"qwen ?2\.5 ?0\.5b|qwen ?2 ?0\.5b", dict(llama(24, 896, 14, 2, 4864, 151936), tied=True)),
    (r"qwen ?2(\.5)? ?1\.5b", dict(llama(28, 1536, 12, 2, 8960, 151936), tied=True)),
    (r"qwen ?2\.5 ?3b", dict(llama(36, 2048, 16, 2, 11008, 151936), tied=True)),
    (r"qwen ?2(\.5)? ?7b", llama(28, 3584, 28, 4, 18944, 152064)),
    (r"qwen ?2\.5 ?14b", llama(48, 5120, 40, 8, 13824, 152064)),
    (r"qwen ?2\.5 ?32b|qwq 32b", llama(64, 5120, 40, 8, 27648, 152064)),
    (r"qwen ?(2(\.5)?) ?72b", llama(80, 8192, 64, 8, 29568, 152064)),
    (r"qwen ?1\.5 ?0\.5b", dict(llama(24, 1024, 16, 16, 2816, 151936), tied=True)),
    (r"qwen ?1\.5 ?1\.8b", llama(24, 2048, 16, 16, 5504, 151936)),
    (r"qwen ?1\.5 ?4b", llama(40, 2560, 20, 20, 6912, 151936)),
    (r"qwen ?1?\.?5? ?7b", llama(32, 4096, 32, 32, 11008, 151936)),
    (r"qwen ?1?\.?5? ?14b", llama(40, 5120, 40, 40, 13696, 152064)),
    (r"qwen ?1\.5 ?32b", llama(64, 5120, 40, 8, 27392, 152064)),
    (r"qwen ?1?\.?5? ?72b", llama(80, 8192, 64, 64, 24576, 152064)),
    (r"qwen ?3 ?0\.6b", dict(llama(28, 1024, 16, 8, 3072, 151936), head_size=128, tied=True)),
    (r"qwen ?3 ?1\.7b", dict(llama(28, 2048, 16, 8, 6144, 151936), head_size=128, tied=True)),
    (r"qwen ?3 ?4b", dict(llama(36, 2560, 32, 8, 9728, 151936), head_size=128, tied=True)),
    (r"qwen ?3 ?8b", dict(llama(36, 4096, 32, 8, 12288, 151936), head_size=128)),
    (r"qwen ?3 ?14b", dict(llama(40, 5120, 40, 8, 17408, 151936), head_size=128)),
    (r"qwen ?3 ?32b", dict(llama(64, 5120, 64, 8, 25600, 151936), head_size=128)),
    (r"qwen ?3 ?30b ?a3b", dict(llama(48, 2048, 32, 4, 6144, 151936), head_size=128, experts=128,
                                experts_per_token=8, expert_ffn=768)),
    (r"qwen ?3 ?235b", dict(llama(94, 4096, 64, 4, 12288, 151936), head_size=128, experts=128,
                            experts_per_token=8, expert_ffn=1536)),
    (r"gemma ?3? ?1b", dict(llama(26, 1152, 4, 1, 6912, 262144), head_size=256, tied=True)),
    (r"gemma ?2b", dict(llama(18, 2048, 8, 1, 16384, 256000), head_size=256, tied=True)),
    (r"gemma ?7b", dict(llama(28, 3072, 16, 16, 24576, 256000), head_size=256, tied=True)),
    (r"gemma ?2 ?2b", dict(llama(26, 2304, 8, 4, 9216, 256000), head_size=256, tied=True)),
    (r"gemma ?2 ?9b", dict(llama(42, 3584, 16, 8, 14336, 256000), head_size=256, tied=True)),
    (r"gemma ?2 ?27b", dict(llama(46, 4608, 32, 16, 36864, 256000), head_size=128, tied=True)),
    (r"yi ?6b", llama(32, 4096, 32, 4, 11008, 64000)),
    (r"yi ?34b", llama(60, 7168, 56, 8, 20480, 64000)),
    (r"baichuan ?2 ?13b", llama(40, 5120, 40, 40, 13696, 125696)),
    (r"baichuan ?2 ?7b", llama(32, 4096, 32, 32, 11008, 125696)),
    (r"baichuan ?13b", llama(40, 5120, 40, 40, 13696, 64000)),
    (r"baichuan ?7b", llama(32, 4096, 32, 32, 11008, 64000)),
    (r"chatglm ?[234] ?6b", llama(28, 4096, 32, 2, 13696, 65024)),
    (r"chatglm ?6b", dict(gpt(28, 4096, 32, 130528), tied=False)),
    (r"aquila ?2? ?7b", llama(32, 4096, 32, 32, 11008, 100008)),
    (r"aquila ?2? ?34b", llama(60, 6144, 48, 8, 24576, 100008)),
    (r"internlm ?7b", llama(32, 4096, 32, 32, 11008, 103168)),
    (r"internlm ?2(\.5)? ?7b", llama(32, 4096, 32, 8, 14336, 92544)),
    (r"internlm ?2(\.5)? ?20b", llama(48, 6144, 48, 8, 16384, 92544)),
    (r"internlm ?20b", llama(60, 5120, 40, 40, 13824, 103168)),
    (r"deepseek ?(llm ?)?7b", llama(30, 4096, 32, 32, 11008, 102400)),
    (r"deepseek ?(llm ?)?67b", llama(95, 8192, 64, 8, 22016, 102400)),
    (r"phi ?3 ?mini", llama(32, 3072, 32, 32, 8192, 32064)),
    (r"phi ?3 ?medium", llama(40, 5120, 40, 10, 17920, 32064)),
    (r"phi ?4", llama(40, 5120, 40, 10, 17920, 100352)),
    (r"phi ?2", dict(gpt(32, 2560, 32, 51200), tied=False)),
    (r"phi ?1(\.5)?", dict(gpt(24, 2048, 32, 51200), tied=False)),
    (r"stablelm ?(base ?)?alpha ?3 ?b", dict(gpt(16, 4096, 32, 50688), tied=False)),
    (r"stablelm ?(base ?)?alpha ?7 ?b", dict(gpt(16, 6144, 48, 50432), tied=False)),
    (r"falcon ?7b", dict(gpt(32, 4544, 71, 65024), kv_heads=1, head_size=64)),
    (r"falcon ?40b", dict(gpt(60, 8192, 128, 65024), kv_heads=8, head_size=64)),
    (r"falcon ?180b", dict(gpt(80, 14848, 232, 65024), kv_heads=8, head_size=64)),
    (r"pythia ?160m", dict(gpt(12, 768, 12, 50304), tied=False)),
    (r"pythia ?410m", dict(gpt(24, 1024, 16, 50304), tied=False)),
    (r"pythia ?1b", dict(gpt(16, 2048, 8, 50304), tied=False)),
    (r"pythia ?1\.4b", dict(gpt(24, 2048, 16, 50304), tied=False)),
    (r"pythia ?2\.8b", dict(gpt(32, 2560, 32, 50304), tied=False)),
    (r"pythia ?6\.9b", dict(gpt(32, 4096, 32, 50432), tied=False)),
    (r"pythia ?12b", dict(gpt(36, 5120, 40, 50688), tied=False)),
    (r"gpt ?j( ?6b)?", dict(gpt(28, 4096, 16, 50400), tied=False)),
    (r"gpt ?neox ?20b", dict(gpt(44, 6144, 64, 50432), tied=False)),
    (r"opt ?125m", gpt(12, 768, 12, 50272, positions=2050)),
    (r"opt ?1\.3b", gpt(24, 2048, 32, 50272, positions=2050)),
    (r"opt ?2\.7b", gpt(32, 2560, 32, 50272, positions=2050)),
    (r"opt ?6\.7b", gpt(32, 4096, 32, 50272, positions=2050)),
    (r"opt ?13b", gpt(40, 5120, 40, 50272, positions=2050)),
    (r"opt ?30b", gpt(48, 7168, 56, 50272, positions=2050)),
    (r"opt ?66b", gpt(64, 9216, 72, 50272, positions=2050)),
    (r"opt ?175b", gpt(96, 12288, 96, 50272, positions=2050)),
    (r"bloomz? ?560m", gpt(24, 1024, 16, 250880)),
    (r"bloomz? ?1b1", gpt(24, 1536, 16, 250880)),
    (r"bloomz? ?1b7", gpt(24, 2048, 16, 250880)),
    (r"bloomz? ?3b", gpt(30, 2560, 32, 250880)),
    (r"bloomz? ?7b1?", gpt(30, 4096, 32, 250880)),
    (r"bloomz?( ?176b)?$", gpt(70, 14336, 112, 250880)),
    (r"nemotron ?4? ?15b", dict(gpt(32, 6144, 48, 256000), kv_heads=8, tied=False)),
    (r"nemotron ?4? ?340b", dict(gpt(96, 18432, 96, 256000), kv_heads=8, tied=False)),
    (r"nemotron ?3? ?8b", dict(gpt(32, 4096, 32, 256000), tied=False)),
    (r"nemotron ?22b", dict(gpt(40, 6144, 48, 256000), tied=False)),
    (r"mpt ?125m", gpt(12, 768, 12, 50368)),
    (r"mpt ?350m", gpt(24, 1024, 16, 50368)),
    (r"mpt ?760m", gpt(24, 1536, 12, 50368)),
    (r"mpt ?1b", gpt(24, 2048, 16, 50368)),
    (r"mpt ?3b", gpt(32, 2560, 20, 50368)),
    (r"mpt ?7b", gpt(32, 4096, 32, 50432)),
    (r"mpt ?13b", gpt(40, 5120, 40, 50368)),
    (r"mpt ?30b", gpt(48, 7168, 64, 50432)),
    (r"mpt ?70b", gpt(80, 8192, 64, 50368)),
    (r"distil ?bert", bert(6, 768, 12)),
    (r"roberta ?large", dict(bert(24, 1024, 16), vocab=50265)),
    (r"roberta", dict(bert(12, 768, 12), vocab=50265)),
    (r"bert ?(large|l)", bert(24, 1024, 16)),
    (r"bert", bert(12, 768, 12)),
    (r"gpt ?2 ?(124m|small)", gpt(12, 768, 12, positions=1024)),
    (r"gpt ?2 ?(345m|350m|355m|medium)", gpt(24, 1024, 16, positions=1024)),
    (r"gpt ?2 ?(774m|762m|large)", gpt(36, 1280, 20, positions=1024)),
    (r"gpt ?2 ?(1\.5b|1558m|xl)", gpt(48, 1600, 25, positions=1024)),
    (r"gpt ?2$", gpt(12, 768, 12, positions=1024)),
    # Brown et al. 2020 (GPT-3), table 2.1; 5B and 20B: NeMo's recipes
    (r"gpt ?3? ?125m", gpt(12, 768, 12, 51200)),
    (r"gpt ?3? ?(350m|355m)", gpt(24, 1024, 16, 51200)),
    (r"gpt ?3? ?760m", gpt(24, 1536, 16, 51200)),
    (r"gpt ?3 ?1\.3b", gpt(24, 2048, 16, 51200)),
    (r"gpt ?3 ?2\.7b", gpt(32, 2560, 32, 51200)),
    (r"gpt ?3? ?5b", gpt(24, 4096, 32, 51200)),
    (r"gpt ?3? ?6\.7b", gpt(32, 4096, 32, 51200)),
    (r"gpt ?3 ?13b", gpt(40, 5120, 40, 51200)),
    (r"gpt ?3 ?20b", gpt(44, 6144, 48, 51200)),
    (r"gpt ?3? ?175b", gpt(96, 12288, 96, 51200)),
    (r"(mt ?nlg|turing( nlg)?|gpt) ?530b", gpt(105, 20480, 128, 51200)),
    # parameters + FLOPs of a sample: He et al. 2015, 4.1·10^9 multiply-adds at 224 × 224, three passes; kept: the outputs of
    # convolutions (11.1·10^6 elements) and of their normalisations
    (r"resnet ?50", dict(parameter_count=25.557e6, flops_per_sample=3 * 2 * 4.09e9, activations=22.2e6)),
    (r"vit ?(large|l) ?/?16", dict(parameter_count=304.3e6, flops_per_sample=3 * 2 * 61.6e9)),
    (r"vit ?(base|b) ?/?16", dict(parameter_count=86.6e6, flops_per_sample=3 * 2 * 17.6e9)),
]
PUBLIC = [(re.compile(pattern), numbers) for pattern, numbers in PUBLIC]

GATED = re.compile(r"llama|mistral|mixtral|qwen|yi\b|baichuan|chatglm|aquila|internlm|deepseek|gemma|phi ?3|phi ?4|olmo|vicuna|alpaca|skywork|tigerbot")
ENCODER = re.compile(r"bert|vit\b")
NO_DECODER = re.compile(r"transformer xl|transformer big|transformer base|\bt5\b|mt0|t0 3b|\bt0\b|\bmt5\b|flan|dlrm|ncf|ssd|unet|retinanet|rnn|wav2vec|conformer|stable diffusion|"
                        r"swin|efficientnet|mobilenet|vgg|inception|resnet(?! ?50)|whisper|tacotron|waveglow|gnmt|fastpitch|mamba|rwkv|clip\b|dit\b")


def plain(text):
    text = re.sub(r"[^a-z0-9.]+", " ", text.lower()).strip()
    return re.sub(r"(\d) ([bm])\b", r"\1\2", text)  # "7 B" is 7b


def number(row, name):
    """A column as a float, None where it is empty; a text that is no number is not stated either."""
    text = (row.get(name) or "").strip().replace(",", "")
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value == value and abs(value) < 1e18 else None


def whole(row, name):
    value = number(row, name)
    return None if value is None or value < 1 else int(value)


def public(name):
    for pattern, numbers in PUBLIC:
        if pattern.search(name):
            return numbers
    return None


def solve_layers(shape, parameters, pp):
    """Layers from the stated parameters; a multiple of the stages where that is as near as it is stated."""
    exact = (parameters - shape.vocab * shape.hidden * (1 if shape.tied else 2)) / shape.layer_weights()
    layers = round(exact)
    if pp > 1 and layers % pp:
        near = round(exact / pp) * pp
        if near and abs(near - exact) <= 0.02 * exact:
            layers = near
    return layers


COUNT = re.compile(r"([\d.]+) ([MBT]) parameters(?:, ([\d.]+) ([MBT]) a token)?, (\d+) layers of (\d+)")
UNITS = {"M": 1e6, "B": 1e9, "T": 1e12}


def squeezed(text):
    return re.sub(r"[^a-z0-9]", "", text.lower())


def of_preset(row, presets):
    """The longest preset name (of {name: what the program's list says of it}) that the model's name has; None."""
    name = squeezed(row.get("model") or "")
    found = max((preset for preset in presets if squeezed(preset) in name), key=len, default=None)
    numbers = COUNT.search(presets[found]) if found else None
    if numbers is None:
        return None
    total = float(numbers.group(1)) * UNITS[numbers.group(2)]
    active = float(numbers.group(3)) * UNITS[numbers.group(4)] if numbers.group(3) else total
    layers = int(numbers.group(5))
    shape = Shape(preset=found, layers=whole(row, "layers") or layers, hidden=int(numbers.group(6)), parameter_count=total, active=active)
    if shape.layers != layers:  # a model cut to fewer layers
        shape.parameter_count, shape.active = total * shape.layers / layers, active * shape.layers / layers
    return shape


def find(row, presets=None):
    """(Shape, [what was assumed]); Unknown. `presets`: {name: about} of the program."""
    name = plain(row.get("model") or "")
    if NO_DECODER.search(name):
        raise Unknown("model is neither a decoder nor an encoder transformer nor one with known FLOPs")
    known = public(name)
    shape, assumed = Shape(), []
    if known is None and not (whole(row, "hidden") and re.search(r"gpt|llama|bert|opt", name)):
        preset = of_preset(row, presets or {})
        if preset:
            return preset, []
    if known:
        for key, value in known.items():
            setattr(shape, key, value)
    if not shape.transformer:
        return shape, ["flops of a sample"]
    columns = {key: whole(row, key) for key in ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab")}
    for key, value in columns.items():
        if value:
            setattr(shape, key, value)
    if known is None:
        shape.gated = bool(GATED.search(name))
        shape.tied = not shape.gated
        shape.encoder = bool(ENCODER.search(name))
    if "tied embeddings" in (row.get("notes") or ""):
        shape.tied = True
    if columns["hidden"] and known and columns["hidden"] != known.get("hidden"):
        # another model of the same name: what hangs on the width is not the public one's
        shape.head_size = 0
        for key in ("heads", "kv_heads", "ffn"):
            if not columns[key]:
                setattr(shape, key, 0)
    parameters = (number(row, "params_b") or 0) * 1e9
    if not shape.hidden:
        raise Unknown("model shape not stated (no layers and hidden size, no public name)")
    if not shape.heads:
        wish = 128 if shape.hidden >= 2048 else 64
        sizes = [size for size in range(8, 513, 8) if shape.hidden % size == 0] or [shape.hidden]
        sizes = [size for size in sizes if shape.hidden // size % (whole(row, "tp") or 1) == 0] or sizes
        shape.heads = shape.hidden // min(sizes, key=lambda size: abs(size - wish))
        assumed.append("heads")
    if columns["heads"] and not columns["kv_heads"] and (not known or known["kv_heads"] == known["heads"]):
        shape.kv_heads = 0
    shape.head_size = shape.head_size or shape.hidden // shape.heads
    shape.kv_heads = shape.kv_heads or shape.heads
    if not shape.ffn:
        shape.ffn = 8 * shape.hidden // 3 if shape.gated else 4 * shape.hidden
        assumed.append("ffn")
    if not shape.layers:
        if not parameters or not shape.vocab:
            raise Unknown("layers not stated")
        shape.layers = solve_layers(shape, parameters, whole(row, "pp") or 1)
        assumed.append("layers of the parameters")
    if not shape.vocab:
        left = parameters - shape.layers * shape.layer_weights()
        vocab = left / shape.hidden / (1 if shape.tied else 2)
        shape.vocab = int(round(vocab / 128) * 128) if 20000 < vocab < 300000 else 51200
        assumed.append("vocabulary")
    if shape.layers < 1 or shape.heads < 1 or shape.hidden < shape.heads:
        raise Unknown("model shape contradicts itself")
    return shape, assumed


def consistent(shape, row):
    """Whether the parameters that the row states are those of the shape, within 25 %."""
    stated = (number(row, "params_b") or 0) * 1e9
    return not stated or abs(shape.parameters() / stated - 1) < 0.25
