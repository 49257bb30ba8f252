// SPDX-License-Identifier: Apache-2.0

// Package klogs decides what a person reads of what the Kubernetes libraries log.
//
// They log by klog, which is global to the process; Route hands their records to a logger of ours. On the way they pass
// an atLeast, a slog.Handler that drops what is below a level and lowers what is not worth a line; a told remembers
// what autoscalers have said of their targets.
//
// Its law: no record of a warning or an error is dropped because of what it says. It is lowered to debugging, where
// whoever looks for it finds it.
package klogs
