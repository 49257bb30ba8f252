// SPDX-License-Identifier: Apache-2.0

// Package dynamic is admission by rules that are objects: webhooks, and policies in CEL (EC-21).
//
// Plugins are Kubernetes' own plug-ins for them, each made when there is a rule for it: a server without rules pays
// nothing. Besides, PolicyParams asks who writes a policy for the right to what the policy reads, and the type checks
// write into a policy's status what is wrong with its expressions. A Connection is how they reach the server they
// belong to, whose list of plug-ins is in package admission.
//
// Its law: where it cannot be known what the rules are, a request is refused.
package dynamic
