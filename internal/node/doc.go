// SPDX-License-Identifier: Apache-2.0

// Package node is the agent: the kubelet's job on one machine, against any Kubernetes API server and any CRI runtime.
//
// [Agent] puts the parts together and decides nothing about pods itself. It registers the node and renews its lease,
// hands pods from the API server and nudges from the runtime to the workers (package work), which ask the planner
// (package plan) and run operations (package ops), and serves the kubelet's HTTPS API (package httpapi).
//
// The law: whatever the agent remembers may be lost at any moment. At its start it takes what the API server and the
// runtime show, and goes on from there; what the runtime has and the API server has not is taken down.
package node
