// SPDX-License-Identifier: Apache-2.0

// This file is empty: with it, the compiler lets functions be declared whose bodies are elsewhere (trace_test.go).
