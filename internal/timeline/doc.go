// SPDX-License-Identifier: Apache-2.0

// Package timeline shows where the time of a pod's life went.
//
// A [History] is what a node noted of one pod: a list of [Moment]s. [Rows] turns it into rows of bars, one row for the
// pod and one a container; [Summary] puts the way to readiness into one line; [Text], [SVG] and [HTML] draw them. Quiet
// stretches that are far longer than everything else are cut short on the axis, so that a start of 0.3 s is still seen
// after a day.
//
// The law: it is pure. Time is in the history, clients and files are somebody else's. Moments may be missing, doubled,
// out of order or cut off by the agent's death: whatever they are, a picture comes out of them.
//
// Pure.
package timeline
