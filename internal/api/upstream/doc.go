// SPDX-License-Identifier: Apache-2.0

// Package upstream is the part of the table of kinds whose rules are Kubernetes' own (docs/decisions/040).
//
// Kinds are its rows: for each kind, Kubernetes' strategies and subresources, opened on this server's store. Package
// types has the Go types behind them.
//
// Its law: nothing here decides anything about a kind; and a kind that nobody asks for costs no connection, no watch
// and no goroutine.
package upstream
