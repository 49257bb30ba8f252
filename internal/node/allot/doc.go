// SPDX-License-Identifier: Apache-2.0

// Package allot decides how much of the machine the kernel is to give a pod and each of its containers: requests and
// limits of a spec as weights, quotas and bytes ([Amounts]), and back.
//
// Its law: the amounts of a container are those of its own requests and limits; where it has no limit, the limit of the
// pod as a whole counts (KEP-2837). A status shows what the spec says for as long as the kernel gives just
// that, and what the kernel gives otherwise.
//
// Pure.
package allot
