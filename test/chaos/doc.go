// SPDX-License-Identifier: Apache-2.0

// Package chaos lets everything die at once: thirty pods of mixed shapes are created and deleted while the server, shims, pauses
// and containers are killed, shims stand still, the network is taken away, and somebody debugs. When the storm is over, what must
// always hold is checked: the pods that are wanted are what they should be, completed init containers ran once in each sandbox and
// in order, no container ever had two instances at once, deleting everything leaves nothing on the node, and the server has no more
// descriptors than a fresh one. It runs for $CHAOS (40s; `make chaos`: 20m) from $CHAOS_SEED.
package chaos
