// SPDX-License-Identifier: Apache-2.0

// Package api is Wherry's API server: the Kubernetes API of one machine, on k8s.io/apiserver.
//
// A Server is made by New from a Config and served by Run. What it serves is one table of kinds (kinds.go): a kind has its Go
// types, its rules (a pure strategy: what is set, what is refused) and its storage on genericregistry.Store. The types of
// k8s.io/api are wire form, hub and stored form at once, so there are no conversions but the one between the two Event APIs.
// Around the storage stand authentication (certificates, tokens), authorisation (system:masters, the node authorizer by package
// nodeauth, roles by package rbac), admission (namespace, service account, tolerations, priority and runtime classes; LimitRanges
// by package limitrange, ResourceQuotas by package quota, whose status quotas.go keeps; Pod Security by Kubernetes' own judge,
// images by package imagepolicy; webhooks and policies by the library's plug-ins, which admission_dynamic.go makes when there is a
// first rule for them) and the connecters of internal/api/connect, which reach a node's own HTTPS API. The debugger (debug*.go)
// makes, stops and records what people start inside pods.
//
// Its law: rules import no client and no clock; nothing is kept in memory that etcd does not hold (except the set of service
// addresses, that of namespaces with limits or quotas and whether there are image policies, rebuilt at start, and what the plug-ins
// of webhooks and policies watch), and every write goes through the same strategies, also the server's own.
package api
