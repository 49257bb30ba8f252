// SPDX-License-Identifier: Apache-2.0

// Package table prints API objects as the rows of "kubectl get": the server side of the Table representation.
//
// A Printer is the columns of one kind and a pure function from an object and a time to the cells of its row;
// NewConvertor turns one into the rest.TableConvertor of a storage. The law: a row depends only on the object and the
// given time, and is exactly what Kubernetes of the same version prints, since scripts parse it. Columns of
// priority 1 are shown only with "-o wide".
//
// Pure.
package table
