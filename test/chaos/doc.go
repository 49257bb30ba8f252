// SPDX-License-Identifier: Apache-2.0

// Package chaos lets everything die at once: thirty pods of mixed shapes are created and deleted while the server,
// shims, pauses and containers are killed, stand still, the network is taken away, and somebody debugs, executes,
// copies and follows logs. There are four kinds of storms:
//
//   - embedded: nothing more than that;
//   - external: etcd and containerd are processes of their own, and are killed and stand still too;
//   - disk: the data folder is on a small disk, which is filled from outside and by pods;
//   - clock: the clock of the server and its shims is put forward and back. They are built anew for that.
//
// When a storm is over, what must always hold is checked: the pods that are wanted are what they should be, completed
// init containers ran once in each sandbox and in order, no container ever had two instances at once, every write that
// was acknowledged is there, deleting everything leaves nothing on the node, and the server holds no more descriptors
// and memory than a fresh one. It runs for $CHAOS (40s; `make chaos`: 20m), divided among $CHAOS_KINDS
// (embedded,external; `make chaos`: all), from $CHAOS_SEED.
package chaos
