// SPDX-License-Identifier: Apache-2.0

// Package health adds what the API server does once it answers, and what its health checks say of that.
//
// [AddHook] is the whole of it: it adds a hook, and checks under the names by which kube-apiserver's are known, each of
// which stands for the hook that does the same here.
//
// Its law: a check says ok only when the work that its name stands for is done.
package health
