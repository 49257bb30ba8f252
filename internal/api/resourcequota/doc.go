// SPDX-License-Identifier: Apache-2.0

// Package resourcequota holds namespaces to their ResourceQuotas: it charges what writes take, and counts anew what is
// freed.
//
// Quotas is a registry.Charger of every counted kind, and the plug-in of admission that refuses what there is no room
// for. What an object takes is decided by package quota.
//
// Its law: in a namespace that has quotas, creations and counts take turns, from admission until the object is stored:
// a count never misses what has just been charged, and writes that race never get more than there is. Where nothing has
// a quota, nothing is read.
package resourcequota
