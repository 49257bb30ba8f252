// SPDX-License-Identifier: Apache-2.0

// Package audit records the requests to the API server, using the library's own implementation
// (k8s.io/apiserver/pkg/audit).
//
// Options say where to; they are kube-apiserver's flags. Open turns them into a Recorder: the policy and the backend
// that the server's handlers call. Without a policy file the built-in policy applies (builtin.yaml): metadata of every
// request, with routine traffic (quiet.yaml) kept only if it was refused. Package trail reads the log back.
//
// Its law: no secret gets into a record, whatever the policy says (redact.go); one record is bounded in size, since
// clients write parts of it; and in the log's default mode a request is recorded before it is answered, so that a
// killed server loses at most the requests that were in progress.
package audit
