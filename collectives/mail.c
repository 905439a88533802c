/* On MPI_COMM_WORLD with tags of its own: everything else here is sent on communicators made from
 * it, so nothing is mixed up. */
#include "collectives/mail.h"

#include <mpi.h>

#include <stdlib.h>
#include <string.h>

#define FIRST_TAG 2000

struct letter {
    char *text;
    MPI_Request request;
    struct letter *next;
};

struct nw_mail {
    struct letter *posted;
};

static nw_rc fail(int code, const char *what)
{
    return nw_fail_lib(NW_ELIB, "mpi", code, "%s failed in MPI (code %d)", what, code);
}

nw_rc nw_mail_open(const struct nw_comm *comm, struct nw_mail **mail_out)
{
    struct nw_mail *mail;

    if (strcmp(comm->ops->name, "mpi") != 0)
        return nw_fail(NW_ENOTSUP, "mail goes over MPI, not over %s", comm->ops->name);
    mail = calloc(1, sizeof *mail);
    if (mail == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the mail between ranks");
    *mail_out = mail;
    return NW_OK;
}

/* Frees what has left. */
static void sweep(struct nw_mail *mail)
{
    struct letter **at = &mail->posted;

    while (*at != NULL) {
        struct letter *letter = *at;
        int done = 0;

        if (MPI_Test(&letter->request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
            at = &letter->next;
            continue;
        }
        *at = letter->next;
        free(letter->text);
        free(letter);
    }
}

nw_rc nw_mail_post(struct nw_mail *mail, int to, int tag, const char *text)
{
    const size_t length = strlen(text);
    struct letter *letter = calloc(1, sizeof *letter);
    int code;

    if (letter != NULL)
        letter->text = strdup(text);
    if (letter == NULL || letter->text == NULL || length > NW_MAIL_MAX_BYTES) {
        free(letter != NULL ? letter->text : NULL);
        free(letter);
        return nw_fail(NW_ENOMEM, "cannot send %zu bytes to rank %d; at most %u", length, to,
                       NW_MAIL_MAX_BYTES);
    }
    code = MPI_Isend(letter->text, (int)length, MPI_CHAR, to, FIRST_TAG + tag, MPI_COMM_WORLD,
                     &letter->request);
    if (code != MPI_SUCCESS) {
        free(letter->text);
        free(letter);
        return fail(code, "sending to a rank");
    }
    letter->next = mail->posted;
    mail->posted = letter;
    sweep(mail);
    return NW_OK;
}

static nw_rc receive(MPI_Message *message, int length, char **text_out)
{
    char *text = NULL;
    int code;

    if ((unsigned)length <= NW_MAIL_MAX_BYTES)
        text = malloc((size_t)length + 1);
    if (text == NULL) {
        char byte; /* MPI has to be rid of it: truncated, which it calls an error */

        MPI_Mrecv(&byte, 1, MPI_CHAR, message, MPI_STATUS_IGNORE);
        return nw_fail(NW_EUSAGE, "a text of %d bytes came from a rank; accepted: up to %u", length,
                       NW_MAIL_MAX_BYTES);
    }
    code = MPI_Mrecv(text, length, MPI_CHAR, message, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) {
        free(text);
        return fail(code, "receiving from a rank");
    }
    text[length] = '\0';
    *text_out = text;
    return NW_OK;
}

nw_rc nw_mail_take(struct nw_mail *mail, int *from_out, int *tag_out, char **text_out)
{
    MPI_Message message;
    MPI_Status status;
    int there = 0, length = 0, code;

    *text_out = NULL;
    sweep(mail);
    code = MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &message, &status);
    if (code != MPI_SUCCESS)
        return fail(code, "looking for mail");
    if (!there)
        return NW_OK;
    MPI_Get_count(&status, MPI_CHAR, &length);
    NW_TRY(receive(&message, length, text_out));
    *from_out = status.MPI_SOURCE;
    *tag_out = status.MPI_TAG - FIRST_TAG;
    return NW_OK;
}

bool nw_mail_has_left(struct nw_mail *mail)
{
    sweep(mail);
    return mail->posted == NULL;
}

void nw_mail_close(struct nw_mail *mail)
{
    if (mail == NULL)
        return;
    sweep(mail);
    while (mail->posted != NULL) { /* MPI may still read the text: it is kept, not freed */
        struct letter *letter = mail->posted;

        mail->posted = letter->next;
        MPI_Request_free(&letter->request);
        free(letter);
    }
    free(mail);
}
