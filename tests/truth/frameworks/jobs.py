"""The jobs of the race: small GPT-2-like nets and ResNet-18, and how nodeworth is told of them."""

import importlib.util

# name: what the net is; GPT: decoder blocks as GPT-2's (learned positions, tied output layer)
GPTS = {
    "gpt-13m": {"layers": 4, "hidden": 384, "heads": 6, "vocab": 16384, "sequence": 128, "batch": 1},
    "gpt-35m": {"layers": 6, "hidden": 512, "heads": 8, "vocab": 32000, "sequence": 128, "batch": 1},
}
RESNETS = {"resnet-18": {"image": 64, "classes": 1000, "batch": 4}}
NAMES = [*GPTS, *RESNETS]

if importlib.util.find_spec("torch"):
    import torch
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self, hidden, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
            self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
            self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

        def forward(self, x):
            batch, length, hidden = x.shape
            parts = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, hidden // self.heads)
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, hidden))
            return x + self.down(functional.gelu(self.up(self.norm2(x))))

    class Gpt(nn.Module):
        def __init__(self, layers, hidden, heads, vocab, sequence, **_):
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocab, hidden), nn.Embedding(sequence, hidden)
            self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
            self.norm = nn.LayerNorm(hidden)

        def units(self):
            return self.blocks

        def forward(self, ids):
            x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
            for block in self.blocks:
                x = block(x)
            return functional.linear(self.norm(x), self.tokens.weight)

    def conv(inner, outer, size, stride):
        return nn.Conv2d(inner, outer, size, stride, size // 2, bias=False)

    class Basic(nn.Module):
        def __init__(self, inner, outer, stride):
            super().__init__()
            self.first, self.second = conv(inner, outer, 3, stride), conv(outer, outer, 3, 1)
            self.norm1, self.norm2 = nn.BatchNorm2d(outer), nn.BatchNorm2d(outer)
            plain = inner == outer and stride == 1
            self.skip = nn.Identity() if plain else nn.Sequential(conv(inner, outer, 1, stride), nn.BatchNorm2d(outer))

        def forward(self, x):
            y = functional.relu(self.norm1(self.first(x)))
            return functional.relu(self.norm2(self.second(y)) + self.skip(x))

    class ResNet18(nn.Module):
        def __init__(self, classes, **_):
            super().__init__()
            self.start = nn.Sequential(conv(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
            sizes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
            self.blocks = nn.ModuleList(Basic(*size) for size in sizes)
            self.head = nn.Linear(512, classes)

        def units(self):
            return self.blocks

        def forward(self, x):
            x = self.start(x)
            for block in self.blocks:
                x = block(x)
            return self.head(x.mean((2, 3))).unsqueeze(1)

    def make(name, rank):
        """Model, inputs, targets of one rank."""
        chance = torch.Generator().manual_seed(100 + rank)
        if name in GPTS:
            job = GPTS[name]
            ids = torch.randint(job["vocab"], (job["batch"], job["sequence"] + 1), generator=chance)
            return Gpt(**job), ids[:, :-1], ids[:, 1:]
        job = RESNETS[name]
        images = torch.randn(job["batch"], 3, job["image"], job["image"], generator=chance)
        return ResNet18(job["classes"]), images, torch.randint(job["classes"], (job["batch"], 1), generator=chance)


def arguments(name, ranks):
    """What `nodeworth predict` is told: the shape, nothing of how fast it is."""
    if name in GPTS:
        job = GPTS[name]
        return ["--layers", job["layers"], "--hidden", job["hidden"], "--heads", job["heads"], "--ffn", 4 * job["hidden"],
                "--vocab", job["vocab"], "--gated", "no", "--tied", "yes", "--seq", job["sequence"],
                "--micro-batch", job["batch"], "--global-batch", job["batch"] * ranks]
    job = RESNETS[name]
    return ["--parameters", 11689512, "--flops-per-sample", 1.8e9 * (job["image"] / 224) ** 2 * 2,
            "--micro-batch", job["batch"], "--global-batch", job["batch"] * ranks]
