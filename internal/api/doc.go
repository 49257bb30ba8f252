// SPDX-License-Identifier: Apache-2.0

// Package api is Wherry's API server: the Kubernetes API of one machine, on k8s.io/apiserver.
//
// A Server is made by New from a Config and served by Run. What it serves is one table of kinds (kinds.go), in the
// words of package registry, which stores them. Around the storage are authentication (certificates, tokens),
// authorisation (system:masters, the node authorizer by package nodeauth, roles by package rbac), admission (namespace,
// service account, tolerations, priority and runtime classes; LimitRanges by package limitrange, ResourceQuotas by
// package quota, whose status quotas.go keeps; Pod Security by Kubernetes' own judge, images by package imagepolicy;
// webhooks and policies by the library's plug-ins, which admission_dynamic.go creates when the first rule for them
// appears) and the connecters of internal/api/connect, which reach a node's own HTTPS API. The debugger (debug*.go)
// makes, stops and records what people start inside pods.
//
// Its law: rules import no client and no clock; nothing is kept in memory that is not in etcd (except the service
// addresses in use, the namespaces with limits or quotas and whether there are image policies, all rebuilt at start,
// and what the plug-ins for webhooks and policies watch); every write, including the server's own, goes through the
// same strategies.
package api
