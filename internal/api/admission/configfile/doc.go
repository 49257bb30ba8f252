// SPDX-License-Identifier: Apache-2.0

// Package configfile reads the file of --admission-control-config-file, an AdmissionConfiguration.
//
// Read gives a Config: what each plug-in is configured with, by its name. Reader hands it to a plug-in of the library;
// PodSecurity and ImagePolicies have it in terms of their types.
//
// Its law: nothing that the file says is silently lost. What no plug-in would use is an error that names the file.
package configfile
