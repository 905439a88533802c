/* Encoders of the BERT kind, and nets that are no language models: parameters and cost of one
 * sample as stated. bert-base and bert-large have BertModel's parameters and the cost of its
 * pre-training: logits over the vocabulary. */
#include "model/presets.h"

#define BERT .vocab = 30522, .positions = 512, .max_positions = 512, .token_types = 2, ENCODER
#define ROBERTA(rows)                                                                              \
    .vocab = rows, .positions = 514, .max_positions = 512, .token_types = 1, ENCODER
#define DISTILBERT .vocab = 30522, .positions = 512, .max_positions = 512, ENCODER
#define ENCODER                                                                                    \
    .head_size = 64, .tied = true, .qkv_bias = true, .output_bias = true, .mlp_bias = true,        \
    .norm_bias = true, .embedding_norm = true, .post_norm = true, .encoder = true
#define MASKED_LM .mlm_head = true, .head_bias = true

const struct nw_preset nw_presets_bert[] = {
    {{SHAPE("bert-base", 12, 768, 3072, 12, 12), BERT, .pooler = true},
     109482240,
     HF("google-bert/bert-base-uncased")},
    {{SHAPE("bert-large", 24, 1024, 4096, 16, 16), BERT, .pooler = true},
     335141888,
     HF("google-bert/bert-large-uncased")},
    {{SHAPE("bert-base-mlm", 12, 768, 3072, 12, 12), BERT, MASKED_LM},
     109514298,
     HF("google-bert/bert-base-uncased")},
    {{SHAPE("bert-large-mlm", 24, 1024, 4096, 16, 16), BERT, MASKED_LM},
     335174458,
     HF("google-bert/bert-large-uncased")},
    {{SHAPE("bert-large-pretraining", 24, 1024, 4096, 16, 16), BERT, MASKED_LM, .pooler = true,
      .classes = 2},
     336226108,
     HF("google-bert/bert-large-uncased")},
    {{SHAPE("roberta-base", 12, 768, 3072, 12, 12), ROBERTA(50265), MASKED_LM},
     124697433,
     HF("FacebookAI/roberta-base")},
    {{SHAPE("roberta-large", 24, 1024, 4096, 16, 16), ROBERTA(50265), MASKED_LM},
     355412057,
     HF("FacebookAI/roberta-large")},
    {{SHAPE("xlm-roberta-base", 12, 768, 3072, 12, 12), ROBERTA(250002), MASKED_LM},
     278295186,
     HF("FacebookAI/xlm-roberta-base")},
    {{SHAPE("distilbert-base", 6, 768, 3072, 12, 12), DISTILBERT, MASKED_LM},
     66985530,
     HF("distilbert/distilbert-base-uncased")},
};
const size_t nw_presets_bert_count = sizeof nw_presets_bert / sizeof nw_presets_bert[0];

/* FLOPs of the forward pass (multiply and add are two), elements kept for the backward pass and
 * elements that operations other than products read and write: counted over the operators of the
 * published code (torchvision, diffusers) on one sample of the size named, attention as a flash
 * kernel. ResNet-50: 4.09 GMAC (torchvision's own figure), ViT-B/16 17.56 GMAC. `layers`: units
 * that repeat (residual blocks, encoder blocks, blocks of the UNet). */

const struct nw_preset nw_presets_vision[] = {
    {{.name = "resnet-50",
      .layers = 16,
      .stated_parameters = 25557032,
      .flops_per_sample = 8.178e9,
      .activations_per_sample = 2.14e7,
      .memory_passes_per_sample = 5.95e7},
     25557032,
     "torchvision resnet50, 224 × 224"},
    {{.name = "resnet-101",
      .layers = 33,
      .stated_parameters = 44549160,
      .flops_per_sample = 1.560e10,
      .activations_per_sample = 3.17e7,
      .memory_passes_per_sample = 9.03e7},
     44549160,
     "torchvision resnet101, 224 × 224"},
    {{.name = "vit-b-16",
      .layers = 12,
      .stated_parameters = 86567656,
      .flops_per_sample = 3.513e10,
      .activations_per_sample = 2.57e7,
      .memory_passes_per_sample = 4.47e7},
     86567656,
     "torchvision vit_b_16, 224 × 224"},
    {{.name = "vit-l-16",
      .layers = 24,
      .stated_parameters = 304326632,
      .flops_per_sample = 1.231e11,
      .activations_per_sample = 6.82e7,
      .memory_passes_per_sample = 1.18e8},
     304326632,
     "torchvision vit_l_16, 224 × 224"},
    {{.name = "vit-h-14",
      .layers = 32,
      .stated_parameters = 632045800,
      .flops_per_sample = 3.346e11,
      .activations_per_sample = 1.48e8,
      .memory_passes_per_sample = 2.55e8},
     632045800,
     "torchvision vit_h_14, 224 × 224"},
    {{.name = "sdxl-unet",
      .layers = 7,
      .stated_parameters = 2567463684,
      .flops_per_sample = 6.761e12,
      .activations_per_sample = 3.02e9,
      .memory_passes_per_sample = 5.30e9},
     2567463684,
     HF("stabilityai/stable-diffusion-xl-base-1.0") " unet, latent 128 × 128, 77 words"},
    {{.name = "sd-1.5-unet",
      .layers = 9,
      .stated_parameters = 859520964,
      .flops_per_sample = 8.033e11,
      .activations_per_sample = 4.21e8,
      .memory_passes_per_sample = 7.87e8},
     859520964,
     HF("stable-diffusion-v1-5/stable-diffusion-v1-5") " unet, latent 64 × 64, 77 words"},
};
const size_t nw_presets_vision_count = sizeof nw_presets_vision / sizeof nw_presets_vision[0];
