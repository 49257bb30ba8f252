// SPDX-License-Identifier: Apache-2.0

// Package klogs decides which log messages of the Kubernetes libraries users see.
//
// The libraries log through klog, which is global to the process; Route sends their records to a logger of ours. On the
// way they pass an atLeast, a slog.Handler that drops records below a level and lowers the level of those that are not
// worth a line; repeats finds errors that autoscalers log again and again.
//
// Its law: no warning or error is dropped because of its text. It is lowered to level Debug, where whoever looks for it
// finds it.
package klogs
