// SPDX-License-Identifier: Apache-2.0

// Package admission decides what is let into the API server of what its sender may ask for, and completes it.
//
// A Control is all plug-ins in the order in which they are asked: plugins has the list, and a file each has the
// plug-ins. Those that take more than a file are packages: dynamic (webhooks and policies), eventlimits, images,
// noderestriction, signers. Options say what they are configured with, by flags and by the file that package configfile
// reads; Completed are options that were checked and read; a Host is the server they belong to.
//
// Its law: what sets fields comes before what judges them, and quotas, which charge, come last. Where it cannot be
// known what the rules are, a request is refused.
package admission
