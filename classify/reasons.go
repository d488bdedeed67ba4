package classify

// The reasons of Unknown: what is open. They are stable, as all reasons are: a code is added, never renamed.
const (
	AmbiguousRoot                   Reason = "ambiguous_root"
	AskerNotShown                   Reason = "asker_not_shown"
	AttributeErrorInThirdPartyFrame Reason = "attribute_error_in_third_party_frame"
	BugWhileHandlingSkew            Reason = "bug_while_handling_skew"
	ChainTooDeep                    Reason = "chain_too_deep"
	CLIMismatch                     Reason = "cli_mismatch"
	CrashSignal                     Reason = "crash_signal"
	DataOfThirdParty                Reason = "data_of_third_party"
	DataOlderThanCode               Reason = "data_older_than_code"
	DiskFullThenTorn                Reason = "disk_full_then_torn"
	DistributionMetadataMissing     Reason = "distribution_metadata_missing"
	InstanceAttributeError          Reason = "instance_attribute_error"
	ManagedBug                      Reason = "managed_bug"
	MissingPackageFile              Reason = "missing_package_file"
	MixedExceptionGroup             Reason = "mixed_exception_group"
	ModuleNotNamed                  Reason = "module_not_named"
	NameErrorInThirdPartyFrame      Reason = "name_error_in_third_party_frame"
	NoManagedModule                 Reason = "no_managed_module"
	NoText                          Reason = "no_text"
	NoUpdateSignature               Reason = "no_update_signature"
	Permission                      Reason = "permission"
	RaisedByThirdParty              Reason = "raised_by_third_party"
	SchemaDriftDirectionUnclear     Reason = "schema_drift_direction_unclear"
	StaleFileHandle                 Reason = "stale_file_handle"
	StdlibMissingInManagedFrame     Reason = "stdlib_missing_in_managed_frame"
	SurvivedFailure                 Reason = "survived_failure"
	SyntaxUnclear                   Reason = "syntax_unclear"
	ThirdPartyABIInBinding          Reason = "third_party_abi_in_binding"
	ThirdPartyError                 Reason = "third_party_error"
	ThirdPartyLoadsManaged          Reason = "third_party_loads_managed"
	ThirdPartyMissing               Reason = "third_party_missing"
	ThirdPartyMissingInManagedFrame Reason = "third_party_missing_in_managed_frame"
	TruncatedTail                   Reason = "truncated_tail"
	TypeErrorInThirdPartyFrame      Reason = "type_error_in_third_party_frame"
	UnreadableFile                  Reason = "unreadable_file"
)

// ReasonInfo explains a reason of [Unknown] in a sentence.
type ReasonInfo struct {
	Reason Reason `json:"reason"`
	Text   string `json:"text"`
}

// OpenReasons are all reasons of [Unknown], in the order of their codes. The slice is the caller's.
func OpenReasons() []ReasonInfo {
	return []ReasonInfo{
		{AmbiguousRoot, "More than one root claims the unit."},
		{AskerNotShown, "A managed unit is missing, and the text does not say who asked for it."},
		{AttributeErrorInThirdPartyFrame, "An object of somebody else's code lacks a member."},
		{BugWhileHandlingSkew, "A failure that looks like an update's was being handled when another one ended the process."},
		{ChainTooDeep, "The chain of causes is longer than any runtime prints."},
		{CLIMismatch, "The program refused its arguments: caller and program may be of different versions."},
		{CrashSignal, "The process crashed in native code, and nothing says where."},
		{DataOfThirdParty, "Stored data does not fit code of somebody else."},
		{DataOlderThanCode, "The data is older than the code: a restart would meet it again."},
		{DiskFullThenTorn, "A file is torn, and the disk was full before."},
		{DistributionMetadataMissing, "The metadata of an installed package is missing or does not fit."},
		{InstanceAttributeError, "An object of the product lacks a member, as any bug would have it."},
		{ManagedBug, "Managed code failed with no sign of an update."},
		{MissingPackageFile, "A file of a package is missing."},
		{MixedExceptionGroup, "Several failures ended the process together and do not agree."},
		{ModuleNotNamed, "Something is missing, and the text does not name the unit."},
		{NameErrorInThirdPartyFrame, "A name is not defined in somebody else's code."},
		{NoManagedModule, "The failure names no unit of the product."},
		{NoText, "There is no text."},
		{NoUpdateSignature, "Nothing in the text looks like an update."},
		{Permission, "A file of the product may not be read."},
		{RaisedByThirdParty, "Somebody else's code refused data of the product."},
		{SchemaDriftDirectionUnclear, "Data and code differ, and nothing says which is newer."},
		{StaleFileHandle, "A file went away while it was open."},
		{StdlibMissingInManagedFrame, "Managed code asked for a part of the runtime that is not there."},
		{SurvivedFailure, "The failure was survived, and nothing says what ended the process."},
		{SyntaxUnclear, "Source does not parse, and a newer language version would explain it as well."},
		{ThirdPartyABIInBinding, "A binding does not fit a library of somebody else."},
		{ThirdPartyError, "Somebody else's code failed."},
		{ThirdPartyLoadsManaged, "Somebody else's code was told to load a managed unit that is missing."},
		{ThirdPartyMissing, "Something of somebody else's is missing."},
		{ThirdPartyMissingInManagedFrame, "Managed code asked for something of somebody else's that is not there."},
		{TruncatedTail, "The text is cut off inside the failure."},
		{TypeErrorInThirdPartyFrame, "A call in somebody else's code does not fit."},
		{UnreadableFile, "A file could not be read."},
	}
}
