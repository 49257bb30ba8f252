// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

func run(uint64, string, []string) (int, error) { return 0, errElsewhere }
