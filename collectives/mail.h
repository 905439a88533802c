/* Public. Texts of any length from rank to rank, without waiting for anybody: for gathering from
 * hosts of which one may never answer. Over MPI; not collective, except that both ends of a text
 * must be running.
 *
 * The mail owns what was posted until it is closed. A text that was taken is the caller's. What was
 * posted leaves while its rank calls post or take.
 *
 *     NW_TRY(nw_mail_open(comm, &mail));
 *     NW_TRY(nw_mail_post(mail, 0, NW_MAIL_FACTS, text));
 *     NW_TRY(nw_mail_take(mail, &from, &tag, &text));      // text NULL: nothing there now
 *     nw_mail_close(mail);
 */
#ifndef NW_COLLECTIVES_MAIL_H
#define NW_COLLECTIVES_MAIL_H

#include "collectives/comm.h"

/* The topology of 8 doubled GPUs with their facts has 30 KB. */
#define NW_MAIL_MAX_BYTES (64u << 20)
#define NW_MAIL_MAX_TAG   1000

struct nw_mail;
/* `comm`: of MPI, over all ranks; borrowed. */
nw_rc nw_mail_open(const struct nw_comm *comm, struct nw_mail **mail_out);
/* `tag`: 0 to NW_MAIL_MAX_TAG. The text is copied. */
nw_rc nw_mail_post(struct nw_mail *mail, int to, int tag, const char *text);
/* The next text that is here, whoever sent it. *text_out NULL: none. NW_EUSAGE: a text beyond
 * NW_MAIL_MAX_BYTES came; it is lost. */
nw_rc nw_mail_take(struct nw_mail *mail, int *from_out, int *tag_out, char **text_out);
/* All that was posted has left. */
bool nw_mail_has_left(struct nw_mail *mail);
/* Accepts NULL. What has not left by then may never arrive. */
void nw_mail_close(struct nw_mail *mail);

#endif
