// SPDX-License-Identifier: Apache-2.0

// Package allocated keeps, in each pod's folder, what the node has set aside for the pod: what a resize has to be
// compared with when the agent has died.
//
// Its law: the file is written before anything is done by what it says, and replaced in one step. Where it is missing
// or cannot be read, what the pod's spec asks for is what is set aside: nothing of such a pod was begun, or the machine
// has lost power, and then nothing of it runs.
package allocated
