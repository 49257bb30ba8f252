// SPDX-License-Identifier: Apache-2.0

// Package imageexec is image exec on the API server's side: a command is run from an image inside a pod, by the pod's
// node (package node/imageexec), and nothing of it is stored in the pod.
//
// A [Server] judges, records and hands the streams over.
//
// Its law: what can be known is refused before anything is on record or the connection is upgraded, and nothing runs
// before it is on record.
package imageexec
