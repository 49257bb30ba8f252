// SPDX-License-Identifier: Apache-2.0

// Package registry knows the node's own logins at image registries.
//
// Logins is the file they are kept in, <data-dir>/config.json, a docker config as docker login writes it; the agent and
// wherry image pull read it (package internal/node/image). Verify asks a registry whether it takes a login, over the
// connection that the registry's settings (<data-dir>/registries/HOST/hosts.toml) describe, as the container runtime
// would.
//
// Its law: the file is root's alone, is replaced as a whole, and keeps what it held besides; a login that the registry
// refuses is not kept.
package registry
