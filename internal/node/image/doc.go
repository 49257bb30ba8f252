// SPDX-License-Identifier: Apache-2.0

// Package image makes sure that a container's image is on the node, by its pull policy (PL-03).
//
// Puller.Ensure asks the runtime for the image and has it pulled when policy says so, with every credential that fits
// the image's registry: first those of the pod's pull secrets, then those of the node's docker config. Pulls are
// limited in number, for each namespace on its own (turns.go), and one pull of an image serves all that wait for it
// with the same credentials. Keyring holds credentials by registry.
//
// Its law: it makes one attempt and reports the result; the planner decides when to try again. What goes wrong is an
// *Error whose Reason is the container's waiting reason and whose Message says what to do (PL-15).
package image
