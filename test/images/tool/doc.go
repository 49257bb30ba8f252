// SPDX-License-Identifier: Apache-2.0

// Command tool is the program in the end-to-end tests' containers. Its first argument is what to do; `tool help` lists
// all. It uses the standard library only, and every behaviour is one small function.
package main
