// SPDX-License-Identifier: Apache-2.0

// Package accounts tells names of users and groups from /etc/passwd and /etc/group, without the machine's name service.
package accounts
