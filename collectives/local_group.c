#include "collectives/local_group.h"

#include <stdlib.h>

void nw_group_free(struct group *group)
{
    if (!group)
        return;
    pthread_cond_destroy(&group->condition);
    free(group->calls);
    free(group->data);
    free(group->mailboxes);
    free(group->world_ranks);
    free(group);
}

struct group *nw_group_new(struct world *world, int rank_count)
{
    const size_t count = (size_t)rank_count;
    struct group *group = calloc(1, sizeof *group);
    if (!group)
        return NULL;
    group->world = world;
    group->rank_count = group->open_count = rank_count;
    pthread_cond_init(&group->condition, NULL);
    group->calls = calloc(count, sizeof *group->calls);
    group->data = calloc(count, sizeof *group->data);
    group->mailboxes = calloc(count, sizeof *group->mailboxes);
    group->world_ranks = calloc(count, sizeof *group->world_ranks);
    if (!group->calls || !group->data || !group->mailboxes || !group->world_ranks) {
        nw_group_free(group);
        return NULL;
    }
    return group;
}

void nw_group_enlist(struct group *group)
{
    struct world *world = group->world;
    pthread_mutex_lock(&world->lock);
    group->next = world->groups;
    world->groups = group;
    pthread_mutex_unlock(&world->lock);
}

/* The last member takes the group off the world's list. */
void nw_group_leave(struct group *group)
{
    struct world *world = group->world;
    pthread_mutex_lock(&world->lock);
    const bool last = --group->open_count == 0;
    if (last) {
        struct group **link = &world->groups;
        while (*link != group)
            link = &(*link)->next;
        *link = group->next;
    }
    pthread_mutex_unlock(&world->lock);
    if (last)
        nw_group_free(group);
}

void nw_group_mark_gone(struct world *world, int world_rank)
{
    for (struct group *group = world->groups; group; group = group->next) {
        for (int i = 0; i < group->rank_count; i++) {
            if (group->world_ranks[i] != world_rank)
                continue;
            group->mailboxes[i].gone = true;
            group->gone_count++;
            pthread_cond_broadcast(&group->condition);
        }
    }
}

nw_rc nw_group_peer_is_gone(const struct world *world)
{
    if (world->failed_rank >= 0)
        return nw_fail(NW_EPEER, "rank %d failed: %s", world->failed_rank, world->failure);
    return nw_fail(NW_EPEER, "another rank has left before this call was over");
}

nw_rc nw_group_meet(struct group *group)
{
    nw_rc rc = NW_OK;
    pthread_mutex_lock(&group->world->lock);
    const uint64_t generation = group->generation;
    if (group->gone_count > 0) {
        rc = nw_group_peer_is_gone(group->world);
    } else if (++group->arrived_count == group->rank_count) {
        group->arrived_count = 0;
        group->generation++;
        pthread_cond_broadcast(&group->condition);
    } else {
        while (group->generation == generation && group->gone_count == 0)
            pthread_cond_wait(&group->condition, &group->world->lock);
        if (group->generation == generation)
            rc = nw_group_peer_is_gone(group->world);
    }
    pthread_mutex_unlock(&group->world->lock);
    return rc;
}
