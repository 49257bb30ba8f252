// SPDX-License-Identifier: Apache-2.0

// Package permit decides whether a request may debug a pod: by the feature gates, the client's rights, and what
// admission says of the change of the pod.
//
// A [Permit] answers for one server. [Refusal] is how debugging refuses with words of its own.
//
// Its law: admission is shown every way to debug as an update of pods/ephemeralcontainers, whichever way it came in.
package permit
