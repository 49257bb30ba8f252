// SPDX-License-Identifier: Apache-2.0

// Package statefile keeps what the agent has to know of a pod when it has died in a file beside the pod: [Write] and
// [Read].
//
// The law: a file is replaced in one step, so that an agent that is killed leaves the old one or the new one. It is not
// synced to disk: a machine that loses power may have neither, and then nothing of the pod runs.
package statefile
