/* Private to report/. Cells that the tables of predictions and decisions share. */
#ifndef NW_REPORT_MODEL_TEXT_PARTS_H
#define NW_REPORT_MODEL_TEXT_PARTS_H

#include "report/model_text.h"

#define GIB (1024.0 * 1024 * 1024)

struct nw_cell { /* holds the text that a call returns */
    char text[64];
};

const char *nw_cell_gib(struct nw_cell *cell, double bytes);
const char *nw_cell_part(struct nw_cell *cell, double ns);
const char *nw_cell_interval(struct nw_cell *cell, const struct nw_step *step);
const char *nw_cell_bounds(struct nw_cell *cell, const struct nw_step *step);
const char *nw_cell_count(struct nw_cell *cell, double value);
const char *nw_cell_percent(struct nw_cell *cell, double share);
const char *nw_cell_nodes(struct nw_cell *cell, int node_count);
const char *nw_cell_room(struct nw_cell *cell, const struct nw_model *model,
                         const struct nw_step *step);
const char *nw_cell_come_by(const struct nw_step *step);
const char *nw_cell_how(unsigned how); /* a word for NW_COST_… */

/* A bar of the step's parts, and their names with shares of it. */
nw_rc nw_report_breakdown(FILE *stream, const struct nw_step *step);
/* The three largest. */
nw_rc nw_report_levers(FILE *stream, const struct nw_model *model, const struct nw_step *step);
/* The cheapest changes with which it would fit. */
nw_rc nw_report_fit(FILE *stream, const struct nw_model *model, const struct nw_step *step);
/* The steps as multiples of the measured one; nothing where none was. */
nw_rc nw_report_anchor(FILE *stream, const struct nw_model *model, const struct nw_steps *steps);

#endif
