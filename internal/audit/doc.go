// SPDX-License-Identifier: Apache-2.0

// Package audit puts the requests of the API server on record, by the library's own means (k8s.io/apiserver/pkg/audit).
//
// Options say where to; they are kube-apiserver's flags. Open makes a Recorder of them: the policy and the backend that the
// server's handlers call. Without a policy file the built-in one holds (builtin.yaml): metadata of every request, of which what
// is plain daily traffic (quiet.yaml) is kept only if it was refused. Package trail reads the log back.
//
// Its law: no secret gets into a record, whatever the policy says (redact.go); one record is bounded in size, since clients
// write parts of it; and what was answered was recorded before, in the log's default mode, so that a killed server loses at
// most the requests that were under way.
package audit
