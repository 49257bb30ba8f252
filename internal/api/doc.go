// SPDX-License-Identifier: Apache-2.0

// Package api is Wherry's API server: the Kubernetes API of one machine, on k8s.io/apiserver.
//
// A Server is made by New from a Config and served by Run. It is a list of components (component.go), each with what it
// needs, undone in reverse: the storage of package registry with the kinds of package kinds; authn, authz and
// admission, which say who asks, what he or she may do and what is let in; filters, the chain of handlers around them;
// connect, which reaches a node's own HTTPS API; customresources; and debug/session, which makes, stops and records
// what people start inside pods.
//
// Its law: the arrows point one way, from here to the parts, and none of them knows the Server. Nothing is kept in
// memory that is not in etcd (except the service addresses in use, the namespaces with limits or quotas and whether
// there are image policies, all rebuilt at start, and what the plug-ins for webhooks and policies watch). Every write,
// including the server's own, goes through the same strategies.
package api
