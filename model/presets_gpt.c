/* Presets with a plain MLP: GPT-2 and 3, Megatron, OPT, BLOOM, MPT, GPT-NeoX, Falcon, StarCoder,
 * Nemotron. */
#include "model/presets.h"

/* Families share what the code of their architecture fixes. */
#define BIASES .qkv_bias = true, .output_bias = true, .mlp_bias = true, .norm_bias = true
#define GPT(rows, length, head)                                                                    \
    .vocab = rows, .positions = length, .max_positions = length, .head_size = head, .tied = true,  \
    BIASES
#define GPT2           GPT(50257, 1024, 64)
#define GPT3(head)     GPT(50257, 2048, head)
#define NEMO(head)     GPT(50304, 2048, head)
#define MEGATRON(head) GPT(51200, 2048, head)
#define MPT_YAML(head) GPT(50368, 2048, head)
#define OPT(head)                                                                                  \
    .vocab = 50272, .positions = 2050, .max_positions = 2048, .head_size = head, .tied = true,     \
    BIASES
#define BLOOM(head)                                                                                \
    .vocab = 250880, .max_positions = 2048, .head_size = head, .tied = true,                       \
    .embedding_norm = true, .alibi = true, BIASES
#define MPT(head, length)                                                                          \
    .vocab = 50432, .max_positions = length, .head_size = head, .tied = true, .alibi = true
#define NEOX(rows, head) .vocab = rows, .head_size = head, .parallel = true, BIASES
#define GPTJ                                                                                       \
    .vocab = 50400, .max_positions = 2048, .head_size = 256, .parallel = true, .one_norm = true,   \
    .mlp_bias = true, .head_bias = true, .norm_bias = true
#define PHI(head)                                                                                  \
    .vocab = 51200, .max_positions = 2048, .head_size = head, .parallel = true, .one_norm = true,  \
    .head_bias = true, BIASES
#define FALCON                                                                                     \
    .vocab = 65024, .max_positions = 2048, .head_size = 64, .tied = true, .parallel = true,        \
    .norm_bias = true
#define STARCODER(length) .vocab = 49152, .max_positions = length, .head_size = 128, BIASES
#define NEMOTRON(head)    .vocab = 256000, .max_positions = 4096, .head_size = head, .norm_bias = true

/* Shapes without a public checkpoint: counted from the shape, l(12h² + 13h) + (V + s)h + 2h; the
 * rounded counts of the papers are tested too. */
#define BROWN       "counted; shape: Brown et al. 2020 (GPT-3), table 2.1"
#define NEMO_SHAPE  "counted; shape: NVIDIA NeMo, GPT-3 configurations"
#define NARAYANAN   "counted; shape: Narayanan et al. 2021 (Megatron-LM), table 1"
#define KORTHIKANTI "counted; shape: Korthikanti et al. 2022, table 3"
#define FOUNDRY     "counted; shape: mosaicml/llm-foundry, scripts/train/yamls"

const struct nw_preset nw_presets_gpt[] = {
    {{SHAPE("gpt2-124m", 12, 768, 3072, 12, 12), GPT2}, 124439808, HF("openai-community/gpt2")},
    {{SHAPE("gpt2-355m", 24, 1024, 4096, 16, 16), GPT2},
     354823168,
     HF("openai-community/gpt2-medium")},
    {{SHAPE("gpt2-774m", 36, 1280, 5120, 20, 20), GPT2},
     774030080,
     HF("openai-community/gpt2-large")},
    {{SHAPE("gpt2-1.5b", 48, 1600, 6400, 25, 25), GPT2},
     1557611200,
     HF("openai-community/gpt2-xl")},
    {{SHAPE("gpt3-125m", 12, 768, 3072, 12, 12), GPT3(64)}, 125226240, BROWN},
    {{SHAPE("gpt3-350m", 24, 1024, 4096, 16, 16), GPT3(64)}, 355871744, BROWN},
    {{SHAPE("gpt3-760m", 24, 1536, 6144, 16, 16), GPT3(96)}, 760300032, BROWN},
    {{SHAPE("gpt3-1.3b", 24, 2048, 8192, 16, 16), GPT3(128)}, 1315723264, BROWN},
    {{SHAPE("gpt3-2.7b", 32, 2560, 10240, 32, 32), GPT3(80)}, 2651553280, BROWN},
    {{SHAPE("gpt3-6.7b", 32, 4096, 16384, 32, 32), GPT3(128)}, 6658404352, BROWN},
    {{SHAPE("gpt3-13b", 40, 5120, 20480, 40, 40), GPT3(128)}, 12853386240, BROWN},
    {{SHAPE("gpt3-175b", 96, 12288, 49152, 96, 96), GPT3(128)}, 174604259328, BROWN},
    {{SHAPE("gpt3-5b", 24, 4096, 16384, 32, 32), NEMO(128)}, 5047558144, NEMO_SHAPE},
    {{SHAPE("gpt3-20b", 44, 6144, 24576, 48, 48), NEMO(128)}, 20256509952, NEMO_SHAPE},
    {{SHAPE("megatron-1.7b", 24, 2304, 9216, 24, 24), MEGATRON(96)}, 1652230656, NARAYANAN},
    {{SHAPE("megatron-3.6b", 30, 3072, 12288, 32, 32), MEGATRON(96)}, 3562168320, NARAYANAN},
    {{SHAPE("megatron-7.5b", 36, 4096, 16384, 32, 32), MEGATRON(128)}, 7467786240, NARAYANAN},
    {{SHAPE("megatron-18b", 40, 6144, 24576, 48, 48), MEGATRON(128)}, 18449756160, NARAYANAN},
    {{SHAPE("megatron-39b", 48, 8192, 32768, 64, 64), MEGATRON(128)}, 39096041472, NARAYANAN},
    {{SHAPE("megatron-76b", 60, 10240, 40960, 80, 80), MEGATRON(128)}, 76050739200, NARAYANAN},
    {{SHAPE("megatron-145b", 80, 12288, 49152, 96, 96), MEGATRON(128)}, 145622261760, NARAYANAN},
    {{SHAPE("megatron-310b", 96, 16384, 65536, 128, 128), MEGATRON(128)}, 310130540544, NARAYANAN},
    {{SHAPE("megatron-530b", 105, 20480, 81920, 128, 128), MEGATRON(160)}, 529600819200, NARAYANAN},
    {{SHAPE("megatron-1t", 128, 25600, 102400, 160, 160), MEGATRON(160)}, 1008038758400, NARAYANAN},
    {{SHAPE("megatron-22b", 48, 6144, 24576, 64, 64), MEGATRON(96)}, 22074273792, KORTHIKANTI},
    {{SHAPE("megatron-175b", 96, 12288, 49152, 96, 96), MEGATRON(128)}, 174615846912, KORTHIKANTI},
    {{SHAPE("opt-125m", 12, 768, 3072, 12, 12), OPT(64)}, 125239296, HF("facebook/opt-125m")},
    {{SHAPE("opt-350m", 24, 1024, 4096, 16, 16), OPT(64), .embedding_size = 512, .post_norm = true},
     331196416,
     HF("facebook/opt-350m")},
    {{SHAPE("opt-1.3b", 24, 2048, 8192, 32, 32), OPT(64)}, 1315758080, HF("facebook/opt-1.3b")},
    {{SHAPE("opt-2.7b", 32, 2560, 10240, 32, 32), OPT(80)}, 2651596800, HF("facebook/opt-2.7b")},
    {{SHAPE("opt-6.7b", 32, 4096, 16384, 32, 32), OPT(128)}, 6658473984, HF("facebook/opt-6.7b")},
    {{SHAPE("opt-13b", 40, 5120, 20480, 40, 40), OPT(128)}, 12853473280, HF("facebook/opt-13b")},
    {{SHAPE("opt-30b", 48, 7168, 28672, 56, 56), OPT(128)}, 29974540288, HF("facebook/opt-30b")},
    {{SHAPE("opt-66b", 64, 9216, 36864, 72, 72), OPT(128)}, 65719701504, HF("facebook/opt-66b")},
    {{SHAPE("bloom-560m", 24, 1024, 4096, 16, 16), BLOOM(64)},
     559214592,
     HF("bigscience/bloom-560m")},
    {{SHAPE("bloom-1b1", 24, 1536, 6144, 16, 16), BLOOM(96)},
     1065314304,
     HF("bigscience/bloom-1b1")},
    {{SHAPE("bloom-1b7", 24, 2048, 8192, 16, 16), BLOOM(128)},
     1722408960,
     HF("bigscience/bloom-1b7")},
    {{SHAPE("bloom-3b", 30, 2560, 10240, 32, 32), BLOOM(80)},
     3002557440,
     HF("bigscience/bloom-3b")},
    {{SHAPE("bloom-7b1", 30, 4096, 16384, 32, 32), BLOOM(128)},
     7069016064,
     HF("bigscience/bloom-7b1")},
    {{SHAPE("bloom-176b", 70, 14336, 57344, 112, 112), BLOOM(128)},
     176247271424,
     HF("bigscience/bloom")},
    {{SHAPE("mpt-125m", 12, 768, 3072, 12, 12), MPT_YAML(64)}, 125311488, FOUNDRY},
    {{SHAPE("mpt-350m", 24, 1024, 4096, 16, 16), MPT_YAML(64)}, 355985408, FOUNDRY},
    {{SHAPE("mpt-760m", 24, 1536, 6144, 12, 12), MPT_YAML(128)}, 760470528, FOUNDRY},
    {{SHAPE("mpt-1b", 24, 2048, 8192, 16, 16), MPT_YAML(128)}, 1315950592, FOUNDRY},
    {{SHAPE("mpt-3b", 32, 2560, 10240, 20, 20), MPT_YAML(128)}, 2651837440, FOUNDRY},
    {{SHAPE("mpt-13b", 40, 5120, 20480, 40, 40), MPT_YAML(128)}, 12853954560, FOUNDRY},
    {{SHAPE("mpt-70b", 80, 8192, 32768, 64, 64), MPT_YAML(128)}, 64862437376, FOUNDRY},
    {{SHAPE("mpt-7b", 32, 4096, 16384, 32, 32), MPT(128, 2048)}, 6649286656, HF("mosaicml/mpt-7b")},
    {{SHAPE("mpt-30b", 48, 7168, 28672, 64, 64), MPT(112, 8192)},
     29957200896,
     HF("mosaicml/mpt-30b")},
    {{SHAPE("gpt-neox-20b", 44, 6144, 24576, 64, 64), NEOX(50432, 96), .max_positions = 2048},
     20554567680,
     HF("EleutherAI/gpt-neox-20b")},
    {{SHAPE("pythia-410m", 24, 1024, 4096, 16, 16), NEOX(50304, 64), .max_positions = 2048},
     405334016,
     HF("EleutherAI/pythia-410m")},
    {{SHAPE("pythia-1b", 16, 2048, 8192, 8, 8), NEOX(50304, 256), .max_positions = 2048},
     1011781632,
     HF("EleutherAI/pythia-1b")},
    {{SHAPE("pythia-1.4b", 24, 2048, 8192, 16, 16), NEOX(50304, 128), .max_positions = 2048},
     1414647808,
     HF("EleutherAI/pythia-1.4b")},
    {{SHAPE("pythia-2.8b", 32, 2560, 10240, 32, 32), NEOX(50304, 80), .max_positions = 2048},
     2775208960,
     HF("EleutherAI/pythia-2.8b")},
    {{SHAPE("pythia-6.9b", 32, 4096, 16384, 32, 32), NEOX(50432, 128), .max_positions = 2048},
     6857302016,
     HF("EleutherAI/pythia-6.9b")},
    {{SHAPE("pythia-12b", 36, 5120, 20480, 40, 40), NEOX(50688, 128), .max_positions = 2048},
     11846072320,
     HF("EleutherAI/pythia-12b")},
    {{SHAPE("stablelm-base-alpha-3b", 16, 4096, 16384, 32, 32), NEOX(50688, 128),
      .max_positions = 4096},
     3637321728,
     HF("stabilityai/stablelm-base-alpha-3b")},
    {{SHAPE("gpt-j-6b", 28, 4096, 16384, 16, 16), GPTJ}, 6050882784, HF("EleutherAI/gpt-j-6b")},
    {{SHAPE("falcon-7b", 32, 4544, 18176, 71, 1), FALCON, .one_norm = true},
     6921720704,
     HF("tiiuae/falcon-7b")},
    {{SHAPE("falcon-40b", 60, 8192, 32768, 128, 8), FALCON}, 41303293952, HF("tiiuae/falcon-40b")},
    {{SHAPE("falcon-180b", 80, 14848, 59392, 232, 8), FALCON},
     178557088768,
     HF("tiiuae/falcon-180B")},
    {{SHAPE("phi-1.5", 24, 2048, 8192, 32, 32), PHI(64)}, 1418270720, HF("microsoft/phi-1_5")},
    {{SHAPE("phi-2", 32, 2560, 10240, 32, 32), PHI(80)}, 2779683840, HF("microsoft/phi-2")},
    {{SHAPE("starcoder2-3b", 30, 3072, 12288, 24, 2), STARCODER(16384), .tied = true},
     3030371328,
     HF("bigcode/starcoder2-3b")},
    {{SHAPE("starcoder2-7b", 32, 4608, 18432, 36, 4), STARCODER(16384), .tied = true},
     7173923840,
     HF("bigcode/starcoder2-7b")},
    {{SHAPE("starcoder2-15b", 40, 6144, 24576, 48, 4), STARCODER(16384), .tied = false},
     15957889024,
     HF("bigcode/starcoder2-15b")},
    {{SHAPE("starcoder-15b", 40, 6144, 24576, 48, 1), STARCODER(8192), .tied = true,
      .positions = 8192},
     15517456384,
     HF("bigcode/starcoder")},
    {{SHAPE("nemotron-4-15b", 32, 6144, 24576, 48, 8), NEMOTRON(128)},
     15628775424,
     "arXiv 2402.16819"},
    {{SHAPE("nemotron-4-340b", 96, 18432, 73728, 96, 8), NEMOTRON(192)},
     341029195776,
     HF("nvidia/Nemotron-4-340B-Base")},
};
const size_t nw_presets_gpt_count = sizeof nw_presets_gpt / sizeof nw_presets_gpt[0];
