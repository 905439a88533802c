/* Public. Do values fall into two clusters, or is it one with noise?
 *
 * The best split of the sorted values in two (least squares within, by trying each place) is taken
 * for real when
 * the clusters lie NW_CLUSTER_RATIO apart, the gap between them is wide against the distance of
 * their means (one cluster has no gap: its best split is through the middle of a crowd), and that
 * distance is many standard deviations within the clusters (a normal distribution cut in two at its
 * median has 2.6, a uniform one 3.5).
 */
#ifndef NW_BASE_CLUSTERS_H
#define NW_BASE_CLUSTERS_H

#include <stdbool.h>
#include <stddef.h>

#define NW_CLUSTER_RATIO      1.15 /* mean of the upper to mean of the lower */
#define NW_CLUSTER_GAP        0.4  /* of the distance of the means */
#define NW_CLUSTER_SEPARATION 5    /* distance of the means, in standard deviations within */
#define NW_CLUSTER_FEW        20   /* so many more by n: few values may agree by chance */
#define NW_CLUSTER_LEAST      4    /* values; two of them in each cluster */

struct nw_clusters {
    size_t low_count, high_count;
    double low_mean, high_mean;
    double boundary; /* the middle of the gap */
};

/* `sorted` ascending, finite and positive. False: one cluster, or too few values to say. */
bool nw_two_clusters(const double *sorted, size_t count, struct nw_clusters *clusters_out);

#endif
