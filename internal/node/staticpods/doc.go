// SPDX-License-Identifier: Apache-2.0

// Package staticpods keeps a node's static pods: it reads their manifests from a folder and from a URL, hands the pods
// to the agent, and remembers their statuses, as there may be no API server that does (PL-12, PL-31).
//
// [Keeper] is the whole of it; package static decides. A folder is watched, and looked through now and then as a safety
// net; a file is read when its writer has closed it. What is wrong with a manifest is reported once, and what ran of it
// before goes on.
//
// Its law: everything that an agent has to know after a restart or a reboot lies in the state folder, one file for each
// pod that is there or still ends; a state that cannot be read is a pod that begins without a past.
package staticpods
