/* Hugging Face config.json: what an architecture's code makes of its keys beyond copying them. */
#include <string.h>

#include "base/json.h"
#include "model/hf_config.h"

const char *nw_hf_class(const json_t *root)
{
    return json_string_value(json_array_get(json_object_get(root, "architectures"), 0));
}

/* What stands behind the last layer follows from the class (modeling_bert.py): BertModel has a
 * pooler, BertForMaskedLM the language-model head, BertForPreTraining both and the next sentence.
 * A classifier has two outputs where the config names no labels. Without a class the parameters are
 * BertModel's, the time and memory those of pre-training. */
nw_rc nw_hf_derive_bert(const json_t *root, const char *what, struct nw_hf_shape *shape)
{
    static const struct head {
        const char *task;
        bool pooler, language;
        uint64_t classes;
    } heads[] = {
        {"ForPreTraining", true, true, 2},
        {"ForMaskedLM", false, true, 0},
        {"ForCausalLM", false, true, 0},
        {"LMHead", false, true, 0},
        {"ForSequenceClassification", true, false, 2},
        {"ForNextSentencePrediction", true, false, 2},
        {"ForTokenClassification", false, false, 2},
        {"ForQuestionAnswering", false, false, 2},
        {"ForMultipleChoice", true, false, 1},
    };
    const char *class = nw_hf_class(root), *name = class != NULL ? class : "";
    /* DistilBERT has no segments and no pooler. */
    const bool segments = shape->net.token_types > 0;

    (void)what;
    shape->net.pooler = segments;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        if (strstr(name, heads[i].task) == NULL)
            continue;
        const json_t *labels = json_object_get(root, "id2label");
        const bool classifies = strstr(name, "Classification") != NULL;

        shape->net.pooler = heads[i].pooler;
        shape->net.mlm_head = heads[i].language;
        shape->net.head_bias = heads[i].language;
        shape->net.classes =
            classifies && json_is_object(labels) ? json_object_size(labels) : heads[i].classes;
    }
    shape->net.tied |= !shape->net.mlm_head; /* without a class: no matrix of its own */
    shape->net.no_vocabulary_head = class != NULL && !shape->net.mlm_head;
    return NW_OK;
}

/* The position of a token counts from the padding index + 1 = 2. */
nw_rc nw_hf_derive_roberta(const json_t *root, const char *what, struct nw_hf_shape *shape)
{
    if (shape->net.positions > 2)
        shape->net.max_positions = shape->net.positions - 2;
    return nw_hf_derive_bert(root, what, shape);
}

/* modeling_opt.py: two rows of positions before the first; without norms before the blocks there is
 * none behind the last either. */
nw_rc nw_hf_derive_opt(const json_t *root, const char *what, struct nw_hf_shape *shape)
{
    struct nw_transformer *net = &shape->net;

    (void)root;
    if (net->max_positions == 0)
        return nw_fail(NW_EUSAGE, "%s: an opt config needs key \"max_position_embeddings\"", what);
    net->positions = net->max_positions + shape->extra_positions;
    net->post_norm = !shape->norm_first;
    if (net->embedding_size == net->hidden)
        net->embedding_size = 0;
    return NW_OK;
}

/* Attention is described in an object of its own; learned positions only without ALiBi. */
nw_rc nw_hf_derive_mpt(const json_t *root, const char *what, struct nw_hf_shape *shape)
{
    const json_t *attention = json_object_get(root, "attn_config");
    struct nw_transformer *net = &shape->net;
    const char *type = NULL;

    if (attention != NULL && !json_is_null(attention)) {
        if (!json_is_object(attention))
            return nw_fail(NW_EUSAGE, "%s: key \"attn_config\" is no object; expected an object",
                           what);
        NW_TRY(nw_json_get_bool(attention, what, "alibi", false, &net->alibi));
        NW_TRY(nw_json_get_u64(attention, what, "kv_n_heads", false, &net->kv_heads));
        NW_TRY(nw_json_get_text(attention, what, "attn_type", false, &type));
        if (type != NULL && strcmp(type, "multiquery_attention") == 0)
            net->kv_heads = 1;
    }
    if (net->max_positions == 0)
        net->max_positions = 2048;
    net->positions = shape->learned_positions && !net->alibi ? net->max_positions : 0;
    if (shape->expansion > 1024)
        return nw_fail(NW_EUSAGE, "%s: expansion_ratio is %llu; accepted: 1 to 1024", what,
                       (unsigned long long)shape->expansion);
    net->ffn = (shape->expansion > 0 ? shape->expansion : 4) * net->hidden;
    return nw_transformer_check_field(offsetof(struct nw_transformer, ffn), net->ffn, what,
                                      "expansion_ratio × d_model");
}

/* configuration_falcon.py: grouped heads count in the new decoder only; one norm before attention
 * and MLP together, two in the new decoder unless it says otherwise. */
nw_rc nw_hf_derive_falcon(const json_t *root, const char *what, struct nw_hf_shape *shape)
{
    struct nw_transformer *net = &shape->net;
    const bool two_norms = shape->new_decoder ? shape->norms_in_parallel != 1 : !net->parallel;

    (void)root, (void)what;
    if (shape->new_decoder) {
        net->kv_heads = shape->group_heads;
        net->parallel = true;
    } else {
        net->kv_heads = shape->single_kv_head ? 1 : net->heads;
    }
    net->one_norm = !two_norms;
    return NW_OK;
}

/* modeling_qwen.py: intermediate_size counts gate and up together. */
nw_rc nw_hf_derive_qwen(const json_t *root, const char *what, struct nw_hf_shape *shape)
{
    (void)root;
    shape->net.ffn = shape->other_ffn / 2;
    return nw_transformer_check_field(offsetof(struct nw_transformer, ffn), shape->net.ffn, what,
                                      "intermediate_size / 2");
}

/* Layers without experts: those listed, and all but every sparse_step-th. */
nw_rc nw_hf_derive_qwen_moe(const json_t *root, const char *what, struct nw_hf_shape *shape)
{
    const json_t *list = json_object_get(root, "mlp_only_layers");
    const uint64_t step = shape->sparse_step > 0 ? shape->sparse_step : 1;
    struct nw_transformer *net = &shape->net;
    bool plain[4096] = {false}; /* layers: at most 4096 */

    if (list != NULL && !json_is_null(list) && !json_is_array(list))
        return nw_fail(NW_EUSAGE, "%s: key \"mlp_only_layers\" is no list; expected layer numbers",
                       what);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_int_t layer = json_integer_value(json_array_get(list, i));

        if (!json_is_integer(json_array_get(list, i)) || layer < 0 ||
            (uint64_t)layer >= net->layers)
            return nw_fail(NW_EUSAGE,
                           "%s: key \"mlp_only_layers\" holds what is no layer; expected 0 to %llu",
                           what, (unsigned long long)net->layers - 1);
        plain[layer] = true;
    }
    net->dense_layers = 0;
    for (uint64_t i = 0; i < net->layers; i++)
        net->dense_layers += plain[i] || (i + 1) % step != 0;
    return NW_OK;
}

/* modeling_llama4.py: beside its experts a token passes one more of their width. */
nw_rc nw_hf_derive_llama4(const json_t *root, const char *what, struct nw_hf_shape *shape)
{
    shape->net.shared_ffn = shape->net.expert_ffn;
    return nw_hf_derive_qwen_moe(root, what, shape);
}

/* Every layer has experts, each as wide as intermediate_size says. */
nw_rc nw_hf_derive_experts_as_wide(const json_t *root, const char *what, struct nw_hf_shape *shape)
{
    (void)root, (void)what;
    shape->net.expert_ffn = shape->net.ffn;
    return NW_OK;
}

/* modeling_deepseek_v2.py, modeling_glm4_moe.py: experts from the first_k_dense_replace-th layer
 * on, every moe_layer_freq-th; the shared experts are one MLP. */
nw_rc nw_hf_derive_deepseek(const json_t *root, const char *what, struct nw_hf_shape *shape)
{
    struct nw_transformer *net = &shape->net;
    const uint64_t step = shape->sparse_step > 0 ? shape->sparse_step : 1,
                   first = net->dense_layers;

    (void)root;
    if (net->kv_rank > 0)
        net->kv_heads = net->heads;
    if (net->experts == 0) {
        net->dense_layers = 0;
        net->router_bias = false;
        return NW_OK;
    }
    net->dense_layers = 0;
    for (uint64_t i = 0; i < net->layers; i++)
        net->dense_layers += i < first || i % step != 0;
    if (shape->shared_experts > 1024)
        return nw_fail(NW_EUSAGE, "%s: n_shared_experts is %llu; accepted: 0 to 1024", what,
                       (unsigned long long)shape->shared_experts);
    net->shared_ffn = shape->shared_experts * net->expert_ffn;
    return NW_OK;
}

/* Key-value heads are groups where the attention says so. The first ChatGLM (inner_hidden_size) has
 * GELU, LayerNorm, all biases and a tied output layer. */
nw_rc nw_hf_derive_chatglm(const json_t *root, const char *what, struct nw_hf_shape *shape)
{
    struct nw_transformer *net = &shape->net;

    (void)what;
    if (json_object_get(root, "ffn_hidden_size") == NULL) {
        net->gated = false;
        net->tied = net->qkv_bias = net->output_bias = net->mlp_bias = net->norm_bias = true;
    } else if (shape->grouped) {
        net->kv_heads = shape->group_heads;
    }
    return NW_OK;
}

/* modeling_baichuan.py of each size: 7B, 4096 wide, has rotary positions, 13B ALiBi. */
nw_rc nw_hf_derive_baichuan(const json_t *root, const char *what, struct nw_hf_shape *shape)
{
    (void)root, (void)what;
    shape->net.alibi = shape->net.hidden != 4096;
    return NW_OK;
}

nw_rc nw_hf_derive_one_head(const json_t *root, const char *what, struct nw_hf_shape *shape)
{
    (void)root, (void)what;
    if (shape->single_kv_head)
        shape->net.kv_heads = 1;
    return NW_OK;
}

/* StableLM: the MLP has no norm of its own beside the attention. */
nw_rc nw_hf_derive_one_norm(const json_t *root, const char *what, struct nw_hf_shape *shape)
{
    (void)root, (void)what;
    shape->net.one_norm = shape->net.parallel;
    return NW_OK;
}
