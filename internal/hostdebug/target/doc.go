// SPDX-License-Identifier: Apache-2.0

// Package target reads what is to be debugged on this machine: docker:web, podman:web, containerd:NAMESPACE/ID, cri:ID,
// pid:4711, systemd:nginx.service. The commands have one grammar: what is none of these is a pod (DA-13).
//
// Its law: it is words only. A pod's name has no colon, so that no word means two things.
//
// Pure.
package target
