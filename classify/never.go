package classify

import "strings"

// The type names that put a failure on the never list whatever else it says. They are names that runtimes and client
// libraries give to their exceptions; the libraries themselves need not be known.
var neverTypes = map[string]Reason{
	"KeyboardInterrupt": Killed, "SystemExit": Killed, "CancelledError": Killed, "WorkerLostError": Killed,
	"Terminated": Killed, "WorkerTerminate": Killed, "Cancelled": Killed, "UserCancelled": Killed, "UserAbort": Killed,
	"BrokenProcessPool": Killed, "TerminatedWorkerError": Killed,

	"MemoryError": OOM, "OutOfMemoryError": OOM, "OutOfMemory": OOM, "OOMError": OOM,

	"TimeoutError": Timeout, "TimeoutExpired": Timeout, "Timeout": Timeout, "timeout": Timeout, "ReadTimeout": Timeout,
	"ConnectTimeout": Timeout, "WriteTimeout": Timeout, "PoolTimeout": Timeout, "TimeoutException": Timeout,
	"SoftTimeLimitExceeded": Timeout, "TimeLimitExceeded": Timeout, "DeadlineExceeded": Timeout, "APITimeoutError": Timeout,
	"ServerTimeoutError": Timeout, "ConnectionTimeoutError": Timeout, "SocketTimeoutError": Timeout, "TooSlowError": Timeout,
	"ReadTimeoutError": Timeout, "ConnectTimeoutError": Timeout, "QueryCanceled": Timeout, "LockTimeout": Timeout,

	"RateLimitError": RateLimit, "TooManyRequests": RateLimit, "TooManyRequestsError": RateLimit, "TooManyRequestsException": RateLimit,
	"ThrottlingException": RateLimit, "ResourceExhausted": RateLimit, "RateLimitExceeded": RateLimit, "QuotaExceeded": RateLimit,
	"QuotaExceededError": RateLimit, "InsufficientQuotaError": RateLimit, "RateLimitExceededError": RateLimit,

	"AuthenticationError": Auth, "PermissionDeniedError": Auth, "Unauthorized": Auth, "UnauthorizedError": Auth,
	"AuthError": Auth, "InvalidApiKeyError": Auth, "InvalidAPIKeyError": Auth, "InvalidApiKey": Auth, "NoCredentialsError": Auth,
	"PartialCredentialsError": Auth, "CredentialRetrievalError": Auth, "TokenRetrievalError": Auth, "UnauthorizedSSOTokenError": Auth,
	"SSOTokenLoadError": Auth, "ExpiredTokenException": Auth, "DefaultCredentialsError": Auth, "RefreshError": Auth,
	"Unauthenticated": Auth, "PermissionDenied": Auth, "Forbidden": Auth, "ForbiddenError": Auth, "AuthenticationFailed": Auth,
	"LoginRequired": Auth, "NotAuthenticated": Auth, "TokenExpiredError": Auth, "AccessDeniedException": Auth,

	"APIError": ProviderError, "APIStatusError": ProviderError, "APIConnectionError": ProviderError, "APIResponseValidationError": ProviderError,
	"InternalServerError": ProviderError, "ServiceUnavailable": ProviderError, "ServiceUnavailableError": ProviderError,
	"OverloadedError": ProviderError, "BadRequestError": ProviderError, "UnprocessableEntityError": ProviderError,
	"ConflictError": ProviderError, "RequestTooLargeError": ProviderError, "ContextWindowExceededError": ProviderError,
	"ContentPolicyViolationError": ProviderError, "ContentFilterFinishReasonError": ProviderError, "LengthFinishReasonError": ProviderError,
	"ModelError": ProviderError, "ProviderError": ProviderError, "ProviderUnreachable": ProviderError, "ProviderUnavailable": ProviderError,
	"ModelStreamErrorException": ProviderError, "ModelNotReadyException": ProviderError, "ModelTimeoutException": ProviderError,
	"ServiceUnavailableException": ProviderError, "InternalServerException": ProviderError, "BlockedPromptException": ProviderError,
	"StopCandidateException": ProviderError, "ResponseStreamingError": ProviderError, "EventStreamError": ProviderError,
	"HTTPStatusError": ProviderError, "HTTPError": ProviderError, "HTTPException": ProviderError, "ConnectError": ProviderError,
	"RemoteProtocolError": ProviderError, "ReadError": ProviderError, "WriteError": ProviderError, "LocalProtocolError": ProviderError,
	"NetworkError": ProviderError, "ProxyError": ProviderError, "SSLError": ProviderError, "SSLCertVerificationError": ProviderError,
	"SSLEOFError": ProviderError, "SSLZeroReturnError": ProviderError, "ConnectionError": ProviderError, "ChunkedEncodingError": ProviderError,
	"MaxRetryError": ProviderError, "NewConnectionError": ProviderError, "ProtocolError": ProviderError, "IncompleteRead": ProviderError,
	"RemoteDisconnected": ProviderError, "BadStatusLine": ProviderError, "ConnectionRefusedError": ProviderError,
	"ConnectionResetError": ProviderError, "ConnectionAbortedError": ProviderError, "gaierror": ProviderError, "URLError": ProviderError,
	"ClientConnectorError": ProviderError, "ClientConnectorDNSError": ProviderError, "ClientOSError": ProviderError,
	"ClientResponseError": ProviderError, "ClientPayloadError": ProviderError, "ServerDisconnectedError": ProviderError,
	"ClientConnectorCertificateError": ProviderError, "EndpointConnectionError": ProviderError, "GoogleAPICallError": ProviderError,
	"RetryError": ProviderError, "ServerError": ProviderError, "BadGateway": ProviderError, "GatewayTimeout": ProviderError,
	"ConnectionClosedError": ProviderError, "ConnectionClosed": ProviderError, "InvalidStatusCode": ProviderError, "InvalidStatus": ProviderError,

	"CalledProcessError": ToolFailure, "ToolError": ToolFailure, "ToolFailed": ToolFailure, "ToolFailure": ToolFailure,
	"ToolException": ToolFailure, "ToolExecutionError": ToolFailure, "CommandFailed": ToolFailure, "ProcessError": ToolFailure,
	"ToolCallError": ToolFailure, "ToolUseError": ToolFailure, "ErrorReturnCode": ToolFailure, "GitCommandError": ToolFailure,
	"UnexpectedExit": ToolFailure, "ProcessExecutionError": ToolFailure, "SubprocessError": ToolFailure,

	"UndefinedError": DirectiveError, "TemplateSyntaxError": DirectiveError, "TemplateNotFound": DirectiveError,
	"TemplatesNotFound": DirectiveError, "TemplateAssertionError": DirectiveError, "TemplateRuntimeError": DirectiveError,
	"TemplateError": DirectiveError, "DirectiveError": DirectiveError, "UnknownDirective": DirectiveError,
	"InvalidDirective": DirectiveError, "DirectiveSyntaxError": DirectiveError, "PromptError": DirectiveError,
	"PromptSyntaxError": DirectiveError, "FrontmatterError": DirectiveError, "FrontMatterError": DirectiveError,

	"UsageError": TestFailure, "CollectError": TestFailure, "CollectionError": TestFailure, "ConftestImportFailure": TestFailure,
}

// codeReason maps system error numbers and names to the never list.
func codeReason(code string) Reason {
	switch code {
	case "28", "122", "ENOSPC", "EDQUOT":
		return DiskFull
	case "12", "ENOMEM":
		return OOM
	case "110", "60", "ETIMEDOUT", "10060", "ESOCKETTIMEDOUT", "ECONNABORTED", "UND_ERR_CONNECT_TIMEOUT", "UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT", "HTTP 408":
		return Timeout
	case "HTTP 429":
		return RateLimit
	case "HTTP 401", "HTTP 403", "HTTP 407":
		return Auth
	case "104", "111", "101", "113", "103", "ECONNRESET", "ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "10061", "10054", "ENOTFOUND", "EAI_AGAIN", "EPIPE", "UND_ERR_SOCKET":
		return ProviderError
	}
	// The status of an answer, where a client keeps it apart from the message. What is below 400 is no failure.
	if status, ok := strings.CutPrefix(code, "HTTP "); ok && status >= "400" && len(status) == 3 {
		return ProviderError
	}
	return ""
}

// clients are the packages whose exceptions come from talking to a provider.
var clients = []string{"openai", "anthropic", "httpx", "httpcore", "requests", "urllib3", "aiohttp", "botocore", "boto3",
	"grpc", "google.api_core", "google.auth", "google.genai", "google.generativeai", "vertexai", "cohere", "mistralai", "litellm", "groq",
	"ollama", "replicate", "huggingface_hub", "together", "fireworks", "websockets", "ssl", "http.client", "urllib.error", "azure.core"}

// neverByType names the entry of the never list that a failure is on by its type, empty for none.
func neverByType(f *Failure) Reason {
	if r := codeReason(f.Code); r != "" {
		return r
	}
	// General types of clients carry the answer's status in the message, and the status is the better reason: an
	// APIStatusError with 429 is a rate limit.
	m := strings.ToLower(f.Message)
	typ := bareType(f.Type)
	switch typ {
	case "SystemExit", "CancelledError":
		return Killed
	case "HTTPError", "HTTPStatusError", "APIStatusError", "APIError", "ClientError", "ClientResponseError", "HTTPException",
		"BadRequestError", "RpcError", "_InactiveRpcError", "_MultiThreadedRendezvous", "AioRpcError", "ServerError", "ProviderError":
		if r := statusReason(m); r != "" {
			return r
		}
	}
	// An exact name is a convention that clients share.
	if r, ok := neverTypes[typ]; ok {
		if r == ProviderError {
			// A general error may say that it is a special one.
			if s := statusReason(m); s != "" {
				return s
			}
		}
		return r
	}
	// Then parts of names. These are words that nobody puts into the name of anything else.
	t := strings.ToLower(typ)
	switch {
	case strings.HasPrefix(t, "errorreturncode"):
		return ToolFailure
	case strings.Contains(t, "ratelimit"), strings.Contains(t, "throttl"):
		return RateLimit
	case strings.Contains(t, "directive"), strings.Contains(t, "frontmatter"):
		return DirectiveError
	case strings.HasSuffix(t, "timeout"), strings.HasSuffix(t, "timeouterror"), strings.HasSuffix(t, "timedout"),
		strings.Contains(t, "timelimit"), strings.Contains(t, "deadlineexceeded"):
		return Timeout
	case strings.Contains(t, "outofmemory"):
		return OOM
	case strings.HasPrefix(t, "tool") && (strings.HasSuffix(t, "error") || strings.HasSuffix(t, "failed") || strings.HasSuffix(t, "failure")):
		return ToolFailure
	case strings.Contains(t, "cancelled") || strings.Contains(t, "canceled"):
		return Killed
	case strings.Contains(t, "overloaded"):
		return ProviderError
	}
	// Last, everything that a known client raises has to do with the provider.
	for _, c := range clients {
		if f.TypeModule == c || strings.HasPrefix(f.TypeModule, c+".") {
			if r := statusReason(m); r != "" {
				return r
			}
			return ProviderError
		}
	}
	return ""
}

// bareType is the last name of a type that is printed with its namespace. A name that says nothing by itself stands for
// its namespace: "Timeout::Error" is a Timeout.
func bareType(t string) string {
	for range 2 {
		at := strings.LastIndexAny(t, `:\`)
		if at <= 0 {
			return t
		}
		if last := t[at+1:]; last != "Error" && last != "Exception" {
			return last
		}
		t = strings.TrimRight(t[:at], `:\`)
	}
	return t
}

// statusReason reads the status that a provider's answer carries, in lower case.
func statusReason(m string) Reason {
	switch {
	case strings.HasPrefix(m, "429"), says(m, "error 429", "error code: 429", "status 429", "status code 429", "statuscode.resource_exhausted", "429 too many", "rate_limit", "rate limit", "insufficient_quota", "throttlingexception", "quota"):
		return RateLimit
	case strings.HasPrefix(m, "401"), strings.HasPrefix(m, "403"), says(m, "error 401", "error 403", "error code: 401", "error code: 403", "status 401", "status code 401", "401 unauthorized", "403 forbidden", "'401 ", "'403 ", "status code 403",
		"statuscode.unauthenticated", "statuscode.permission_denied", "expiredtoken", "invalidclienttokenid", "accessdenied", "authentication_error", "invalid api key", "api key not valid", "unrecognizedclient"):
		return Auth
	case says(m, "statuscode.deadline_exceeded"):
		return Timeout
	case says(m, "error code: 5", "error code: 4", "status code 5", "overloaded"):
		return ProviderError
	}
	return ""
}

// says reports whether s holds one of the words.
func says(s string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// neverByMessage names the entry that a failure without a telling type is on by what it says, empty for none.
func neverByMessage(f *Failure, s *scope) Reason {
	m := strings.ToLower(f.Message)
	if len(m) > 2048 {
		m = m[:2048]
	}
	// The order is that of certainty: a machine that ran out of something, an answer with a status, a tool, and only
	// then words that many things say.
	switch {
	case says(m, "no space left on device", "disk quota exceeded", "database or disk is full"):
		return DiskFull
	case says(m, "out of memory", "cannot allocate memory", "paging file is too small", "unable to allocate"):
		return OOM
	case says(m, "failed to map segment from shared object") && !says(m, "not permitted", "permission denied"):
		return OOM
	case says(m, "rate limit", "rate_limit", "too many requests", "error code: 429", "response code: 429", "insufficient_quota"):
		return RateLimit
	case says(m, "response code: 401", "response code: 403", "401 (unauthorized)", "403 (forbidden)"):
		return Auth
	case says(m, "response code: 5", "status code does not indicate success"):
		return ProviderError
	case says(m, "invalid api key", "invalid x-api-key", "authentication_error", "error code: 401", "api_key is not set", "api key is not set", "api key not set", "no api key", "missing api key"):
		return Auth
	case says(m, "tool", "command", "hook", "subprocess") && says(m, "(exit ", "exit code", "exited "):
		return ToolFailure
	case says(m, "exited with", "returned non-zero exit status", "failed with exit code", "exit status", "tool '", "tool \""):
		return ToolFailure
	case says(m, "unknown directive", "invalid directive"):
		return DirectiveError
	case says(m, "overloaded", "error code: 5", "fetch failed", "socket hang up", "service unavailable", "connection refused", "connection reset by peer", "remote end closed connection", "peer closed connection", "name or service not known", "temporary failure in name resolution", "network is unreachable"):
		return ProviderError
	case says(m, "signal 9 (sigkill)", "signal 15 (sigterm)", "exited prematurely", "terminated abruptly"):
		return Killed
	case says(m, "timed out", "deadline exceeded"):
		return Timeout
	}
	// What a run says last of all is as good inside of an exception that it raised to end itself.
	if r := terminalReason(firstLine(m)); r != "" {
		return r
	}
	// A file of the user's that is refused, whoever says so: what steers a run, if its ending says that.
	if s.foreignData(f.Message) && !says(m, "version", "newer") {
		if parserType(f.Type) || says(m, ".yml", ".yaml", ".toml", ".json", ".md", ".j2", ".jinja", ".ini", ".cfg") {
			return DirectiveError
		}
		return WorkspaceError
	}
	return ""
}

// parserType reports the types with which parsers refuse a document.
func parserType(t string) bool {
	switch t {
	case "ScannerError", "ParserError", "ComposerError", "ConstructorError", "ReaderError", "YAMLError", "MarkedYAMLError",
		"JSONDecodeError", "TOMLDecodeError", "TomlDecodeError", "DuplicateKeyError", "ParseError", "ParsingError":
		return true
	}
	return false
}
