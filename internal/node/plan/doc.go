// SPDX-License-Identifier: Apache-2.0

// Package plan decides what a pod needs next on its node.
//
// Its one function is [Next]: from an [Input], which holds nothing but facts (the pod as stored, what the
// runtime shows, what was heard from finished operations, which calls are out, the time), it derives a
// [Decision]: every operation that ought to be under way now, the status to publish, the reasons, and when to
// look again. It keeps no state, and no phase is stored anywhere: phases, conditions, CrashLoopBackOff and
// PodInitializing fall out of the facts on every call.
//
// The law: Next is a pure function. It knows no client, context, logger or clock. Recovery is the ordinary
// path: after the agent died, Heard and Calls are empty, and nothing that already happened may happen again.
// For that, what cannot be seen in the runtime is in the stored status or in container annotations.
//
// Words: an *init* is an init container without restartPolicy, a *sidecar* one with restartPolicy Always, a
// *main* a container of spec.containers. Inits and sidecars form one ordered list of *gates*: an init's gate
// opens when it exits 0, a sidecar's when it has started; mains start behind the last gate. *Here* means: in the
// pod's newest sandbox. A pod is *leaving* when nothing may start in it any more, and has *ended* when, on top of
// that, nothing runs and no call is out that could change it.
//
// Pure.
package plan
