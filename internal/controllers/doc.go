// SPDX-License-Identifier: Apache-2.0

// Package controllers holds the control loops of the server, one package each:
//
//   - of pods and nodes: scheduler, podgc, nodelifecycle, nodeipam, tainteviction;
//   - of identity: serviceaccount, rootca, certificates, podcertificates, bootstraptokens, roleaggregation;
//   - of services and volumes: servicenames, loadbalancer, localvolumes, volumes, attachments;
//   - namespace, which empties one that is deleted.
//
// loop is what those that process a queue of names share. Those that are Kubernetes' own are listed in workloads and
// run by ondemand. The loop that keeps the records of debugging is in internal/debug/bookkeeping.
//
// Each has New(client, informers, logger, ...) and Run(ctx), which blocks until ctx is done and then leaves nothing
// behind. New asks the factory for its informers; the composer starts the factory after the last New and shuts it
// down after the last Run. The law: a controller acts on events at once; it polls nothing, and whatever it
// did before a crash it finds again in the API.
package controllers
