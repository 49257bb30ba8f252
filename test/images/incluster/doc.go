// SPDX-License-Identifier: Apache-2.0

// Command incluster is a client as people put it into pods: it finds the API server, its token and the CA by what the
// pod has of them (rest.InClusterConfig), and prints the names of the pods in its namespace.
package main
