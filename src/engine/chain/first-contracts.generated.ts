// Written by contracts/compile.ts. Do not edit; run `bun contracts/compile.ts`.

export const firstFactoryAbi = [
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "firstAdmin",
        "type": "address"
      },
      {
        "internalType": "address",
        "name": "firstAuthorizer",
        "type": "address"
      },
      {
        "internalType": "address[]",
        "name": "operators",
        "type": "address[]"
      }
    ],
    "stateMutability": "nonpayable",
    "type": "constructor"
  },
  {
    "inputs": [
      {
        "internalType": "bytes32",
        "name": "salt",
        "type": "bytes32"
      }
    ],
    "name": "DeploymentFailed",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "size",
        "type": "uint256"
      }
    ],
    "name": "NameTooLong",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "caller",
        "type": "address"
      }
    ],
    "name": "NotAdmin",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "caller",
        "type": "address"
      }
    ],
    "name": "NotOperator",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "caller",
        "type": "address"
      }
    ],
    "name": "NotPendingAdmin",
    "type": "error"
  },
  {
    "inputs": [],
    "name": "ZeroAddress",
    "type": "error"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "admin",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "pendingAdmin",
        "type": "address"
      }
    ],
    "name": "AdminTransferStarted",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "previousAdmin",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "admin",
        "type": "address"
      }
    ],
    "name": "AdminTransferred",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "authorizer",
        "type": "address"
      }
    ],
    "name": "AuthorizerSet",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "collection",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "bytes32",
        "name": "salt",
        "type": "bytes32"
      },
      {
        "indexed": false,
        "internalType": "string",
        "name": "name",
        "type": "string"
      },
      {
        "indexed": false,
        "internalType": "string",
        "name": "symbol",
        "type": "string"
      }
    ],
    "name": "CollectionDeployed",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "operator",
        "type": "address"
      },
      {
        "indexed": false,
        "internalType": "bool",
        "name": "allowed",
        "type": "bool"
      }
    ],
    "name": "OperatorSet",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [],
    "name": "Released",
    "type": "event"
  },
  {
    "inputs": [],
    "name": "acceptAdmin",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "bytes32",
        "name": "salt",
        "type": "bytes32"
      },
      {
        "internalType": "string",
        "name": "name",
        "type": "string"
      },
      {
        "internalType": "string",
        "name": "symbol",
        "type": "string"
      }
    ],
    "name": "addressOf",
    "outputs": [
      {
        "internalType": "address",
        "name": "",
        "type": "address"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "admin",
    "outputs": [
      {
        "internalType": "address",
        "name": "",
        "type": "address"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "authorizer",
    "outputs": [
      {
        "internalType": "address",
        "name": "",
        "type": "address"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "bytes32",
        "name": "salt",
        "type": "bytes32"
      },
      {
        "internalType": "string",
        "name": "name",
        "type": "string"
      },
      {
        "internalType": "string",
        "name": "symbol",
        "type": "string"
      }
    ],
    "name": "deploy",
    "outputs": [
      {
        "internalType": "address",
        "name": "collection",
        "type": "address"
      }
    ],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "implementation",
    "outputs": [
      {
        "internalType": "address",
        "name": "",
        "type": "address"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "account",
        "type": "address"
      }
    ],
    "name": "isOperator",
    "outputs": [
      {
        "internalType": "bool",
        "name": "",
        "type": "bool"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "pendingAdmin",
    "outputs": [
      {
        "internalType": "address",
        "name": "",
        "type": "address"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "release",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "released",
    "outputs": [
      {
        "internalType": "bool",
        "name": "",
        "type": "bool"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "account",
        "type": "address"
      }
    ],
    "name": "setAuthorizer",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "account",
        "type": "address"
      },
      {
        "internalType": "bool",
        "name": "allowed",
        "type": "bool"
      }
    ],
    "name": "setOperator",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "account",
        "type": "address"
      }
    ],
    "name": "transferAdmin",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  }
] as const

export const firstCollectionAbi = [
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "internalType": "address",
        "name": "owner",
        "type": "address"
      }
    ],
    "name": "AlreadyClaimed",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "deadline",
        "type": "uint256"
      },
      {
        "internalType": "uint256",
        "name": "timestamp",
        "type": "uint256"
      }
    ],
    "name": "AuthorizationExpired",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "ChipLocked",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "internalType": "uint40",
        "name": "currentChip",
        "type": "uint40"
      },
      {
        "internalType": "uint40",
        "name": "previousChip",
        "type": "uint40"
      }
    ],
    "name": "ChipMismatch",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "internalType": "uint256",
        "name": "nonce",
        "type": "uint256"
      }
    ],
    "name": "InvalidAuthorization",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "size",
        "type": "uint256"
      },
      {
        "internalType": "uint256",
        "name": "maximum",
        "type": "uint256"
      }
    ],
    "name": "InvalidBatchSize",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "InvalidChip",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "recipient",
        "type": "address"
      }
    ],
    "name": "InvalidRecipient",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "internalType": "uint40",
        "name": "issuedChip",
        "type": "uint40"
      },
      {
        "internalType": "uint40",
        "name": "chip",
        "type": "uint40"
      }
    ],
    "name": "IssuedDifferently",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serials",
        "type": "uint256"
      },
      {
        "internalType": "uint256",
        "name": "recipients",
        "type": "uint256"
      }
    ],
    "name": "LengthMismatch",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "caller",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "NotApproved",
    "type": "error"
  },
  {
    "inputs": [],
    "name": "NotClone",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "caller",
        "type": "address"
      }
    ],
    "name": "NotFactory",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "NotIssued",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "caller",
        "type": "address"
      }
    ],
    "name": "NotOperator",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "account",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "internalType": "address",
        "name": "owner",
        "type": "address"
      }
    ],
    "name": "NotOwner",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "caller",
        "type": "address"
      },
      {
        "internalType": "address",
        "name": "recipient",
        "type": "address"
      }
    ],
    "name": "NotRecipient",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "expectedFirst",
        "type": "uint256"
      },
      {
        "internalType": "uint256",
        "name": "next",
        "type": "uint256"
      }
    ],
    "name": "SerialGap",
    "type": "error"
  },
  {
    "inputs": [],
    "name": "TransfersLocked",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "recipient",
        "type": "address"
      }
    ],
    "name": "UnsafeRecipient",
    "type": "error"
  },
  {
    "inputs": [],
    "name": "ZeroAddress",
    "type": "error"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "owner",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "approved",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "uint256",
        "name": "tokenId",
        "type": "uint256"
      }
    ],
    "name": "Approval",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "owner",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "operator",
        "type": "address"
      },
      {
        "indexed": false,
        "internalType": "bool",
        "name": "approved",
        "type": "bool"
      }
    ],
    "name": "ApprovalForAll",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "indexed": true,
        "internalType": "bytes32",
        "name": "authorization",
        "type": "bytes32"
      }
    ],
    "name": "AuthorizationUsed",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "indexed": false,
        "internalType": "uint40",
        "name": "previousChip",
        "type": "uint40"
      },
      {
        "indexed": false,
        "internalType": "uint40",
        "name": "chip",
        "type": "uint40"
      }
    ],
    "name": "ChipReplaced",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "recipient",
        "type": "address"
      }
    ],
    "name": "ClaimSkipped",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "uint256",
        "name": "first",
        "type": "uint256"
      },
      {
        "indexed": false,
        "internalType": "bytes",
        "name": "chips",
        "type": "bytes"
      }
    ],
    "name": "Issued",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": false,
        "internalType": "uint256",
        "name": "tokenId",
        "type": "uint256"
      }
    ],
    "name": "MetadataUpdate",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "from",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "to",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "uint256",
        "name": "tokenId",
        "type": "uint256"
      }
    ],
    "name": "Transfer",
    "type": "event"
  },
  {
    "inputs": [],
    "name": "MAX_BATCH",
    "outputs": [
      {
        "internalType": "uint256",
        "name": "",
        "type": "uint256"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "to",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "approve",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "authorizationNonce",
    "outputs": [
      {
        "internalType": "uint256",
        "name": "",
        "type": "uint256"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "authorizer",
    "outputs": [
      {
        "internalType": "address",
        "name": "",
        "type": "address"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "owner",
        "type": "address"
      }
    ],
    "name": "balanceOf",
    "outputs": [
      {
        "internalType": "uint256",
        "name": "",
        "type": "uint256"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "chipOf",
    "outputs": [
      {
        "internalType": "uint40",
        "name": "",
        "type": "uint40"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "internalType": "address",
        "name": "recipient",
        "type": "address"
      }
    ],
    "name": "claim",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256[]",
        "name": "serials",
        "type": "uint256[]"
      },
      {
        "internalType": "address[]",
        "name": "recipients",
        "type": "address[]"
      }
    ],
    "name": "claimBatch",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "internalType": "address",
        "name": "recipient",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "deadline",
        "type": "uint256"
      },
      {
        "internalType": "bytes",
        "name": "signature",
        "type": "bytes"
      }
    ],
    "name": "claimWithAuthorization",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "claimed",
    "outputs": [
      {
        "internalType": "uint256",
        "name": "",
        "type": "uint256"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "eip712Domain",
    "outputs": [
      {
        "internalType": "bytes1",
        "name": "fields",
        "type": "bytes1"
      },
      {
        "internalType": "string",
        "name": "domainName",
        "type": "string"
      },
      {
        "internalType": "string",
        "name": "version",
        "type": "string"
      },
      {
        "internalType": "uint256",
        "name": "chainId",
        "type": "uint256"
      },
      {
        "internalType": "address",
        "name": "verifyingContract",
        "type": "address"
      },
      {
        "internalType": "bytes32",
        "name": "salt",
        "type": "bytes32"
      },
      {
        "internalType": "uint256[]",
        "name": "extensions",
        "type": "uint256[]"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "factory",
    "outputs": [
      {
        "internalType": "address",
        "name": "",
        "type": "address"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "getApproved",
    "outputs": [
      {
        "internalType": "address",
        "name": "",
        "type": "address"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "owner",
        "type": "address"
      },
      {
        "internalType": "address",
        "name": "operator",
        "type": "address"
      }
    ],
    "name": "isApprovedForAll",
    "outputs": [
      {
        "internalType": "bool",
        "name": "",
        "type": "bool"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "account",
        "type": "address"
      }
    ],
    "name": "isOperator",
    "outputs": [
      {
        "internalType": "bool",
        "name": "",
        "type": "bool"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "expectedFirst",
        "type": "uint256"
      },
      {
        "internalType": "uint40[]",
        "name": "chips",
        "type": "uint40[]"
      }
    ],
    "name": "issue",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "issued",
    "outputs": [
      {
        "internalType": "uint256",
        "name": "",
        "type": "uint256"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "locked",
    "outputs": [
      {
        "internalType": "bool",
        "name": "",
        "type": "bool"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "name",
    "outputs": [
      {
        "internalType": "string",
        "name": "",
        "type": "string"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "ownerOf",
    "outputs": [
      {
        "internalType": "address",
        "name": "",
        "type": "address"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "release",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "released",
    "outputs": [
      {
        "internalType": "bool",
        "name": "",
        "type": "bool"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "internalType": "uint40",
        "name": "previousChip",
        "type": "uint40"
      },
      {
        "internalType": "uint40",
        "name": "chip",
        "type": "uint40"
      }
    ],
    "name": "replaceChip",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "from",
        "type": "address"
      },
      {
        "internalType": "address",
        "name": "to",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "safeTransferFrom",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "from",
        "type": "address"
      },
      {
        "internalType": "address",
        "name": "to",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "internalType": "bytes",
        "name": "data",
        "type": "bytes"
      }
    ],
    "name": "safeTransferFrom",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "operator",
        "type": "address"
      },
      {
        "internalType": "bool",
        "name": "approved",
        "type": "bool"
      }
    ],
    "name": "setApprovalForAll",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "account",
        "type": "address"
      }
    ],
    "name": "setAuthorizer",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "account",
        "type": "address"
      },
      {
        "internalType": "bool",
        "name": "allowed",
        "type": "bool"
      }
    ],
    "name": "setOperator",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "bytes4",
        "name": "id",
        "type": "bytes4"
      }
    ],
    "name": "supportsInterface",
    "outputs": [
      {
        "internalType": "bool",
        "name": "",
        "type": "bool"
      }
    ],
    "stateMutability": "pure",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "symbol",
    "outputs": [
      {
        "internalType": "string",
        "name": "",
        "type": "string"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "tokenURI",
    "outputs": [
      {
        "internalType": "string",
        "name": "",
        "type": "string"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "totalSupply",
    "outputs": [
      {
        "internalType": "uint256",
        "name": "",
        "type": "uint256"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "from",
        "type": "address"
      },
      {
        "internalType": "address",
        "name": "to",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "transferFrom",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "internalType": "address",
        "name": "to",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "deadline",
        "type": "uint256"
      },
      {
        "internalType": "bytes",
        "name": "signature",
        "type": "bytes"
      }
    ],
    "name": "transferWithAuthorization",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  }
] as const

export const firstFactoryBytecode =
  "0x60a060405234801561000f575f5ffd5b506040516147b63803806147b683398101604081905261002e916102b3565b6001600160a01b0383166100555760405163d92e233d60e01b815260040160405180910390fd5b60405161006190610277565b604051809103905ff08015801561007a573d5f5f3e3d5ffd5b506001600160a01b039081166080525f80546001600160a01b03191691851691821781556040517ff8ccb027dfcd135e000e9d45e6cc2d662578a8825d4c45b5e32e0adf67e79ec6908290a36100cf82610115565b5f5b815181101561010c576101048282815181106100ef576100ef6103a0565b602002602001015160016101a560201b60201c565b6001016100d1565b505050506103b4565b60805160405163058a628f60e01b81526001600160a01b0383811660048301529091169063058a628f906024015f604051808303815f87803b158015610159575f5ffd5b505af115801561016b573d5f5f3e3d5ffd5b50506040516001600160a01b03841692507fb251079a3e59729d2256949e48e44b7959908cdf34789078b6a1462ec327672091505f90a250565b6001600160a01b0382166101cc5760405163d92e233d60e01b815260040160405180910390fd5b60805160405163558a729760e01b81526001600160a01b03848116600483015283151560248301529091169063558a7297906044015f604051808303815f87803b158015610218575f5ffd5b505af115801561022a573d5f5f3e3d5ffd5b50505050816001600160a01b03167f1a594081ae893ab78e67d9b9e843547318164322d32c65369d78a96172d9dc8f8260405161026b911515815260200190565b60405180910390a25050565b6133cd806113e983390190565b80516001600160a01b038116811461029a575f5ffd5b919050565b634e487b7160e01b5f52604160045260245ffd5b5f5f5f606084860312156102c5575f5ffd5b6102ce84610284565b92506102dc60208501610284565b60408501519092506001600160401b038111156102f7575f5ffd5b8401601f81018613610307575f5ffd5b80516001600160401b038111156103205761032061029f565b604051600582901b90603f8201601f191681016001600160401b038111828210171561034e5761034e61029f565b60405291825260208184018101929081018984111561036b575f5ffd5b6020850194505b838510156103915761038385610284565b815260209485019401610372565b50809450505050509250925092565b634e487b7160e01b5f52603260045260245ffd5b608051610fec6103fd5f395f818161015d015281816103ea0152818161057d015281816106240152818161086d015281816109df01528181610b130152610c300152610fec5ff3fe608060405234801561000f575f5ffd5b50600436106100da575f3560e01c806375829def11610088578063b2670cc511610063578063b2670cc5146101c5578063d09edf31146101d8578063ee51b889146101e0578063f851a440146101f3575f5ffd5b806375829def146101a257806386d1a69f146101b557806396132521146101bd575f5ffd5b8063558a7297116100b8578063558a7297146101455780635c60da1b146101585780636d70f7ae1461017f575f5ffd5b8063058a628f146100de5780630e18b681146100f357806326782247146100fb575b5f5ffd5b6100f16100ec366004610c9d565b610212565b005b6100f1610275565b60015461011b9073ffffffffffffffffffffffffffffffffffffffff1681565b60405173ffffffffffffffffffffffffffffffffffffffff90911681526020015b60405180910390f35b6100f1610153366004610ccc565b610343565b61011b7f000000000000000000000000000000000000000000000000000000000000000081565b61019261018d366004610c9d565b6103a3565b604051901515815260200161013c565b6100f16101b0366004610c9d565b61045b565b6100f161051d565b610192610621565b61011b6101d3366004610d48565b6106b4565b61011b61086a565b61011b6101ee366004610d48565b6108f8565b5f5461011b9073ffffffffffffffffffffffffffffffffffffffff1681565b5f5473ffffffffffffffffffffffffffffffffffffffff163314610269576040517f17a842420000000000000000000000000000000000000000000000000000000081523360048201526024015b60405180910390fd5b6102728161099a565b50565b60015473ffffffffffffffffffffffffffffffffffffffff1633146102c8576040517f1d0022d1000000000000000000000000000000000000000000000000000000008152336004820152602401610260565b5f8054604051339273ffffffffffffffffffffffffffffffffffffffff909216917ff8ccb027dfcd135e000e9d45e6cc2d662578a8825d4c45b5e32e0adf67e79ec691a35f80547fffffffffffffffffffffffff00000000000000000000000000000000000000009081163317909155600180549091169055565b5f5473ffffffffffffffffffffffffffffffffffffffff163314610395576040517f17a84242000000000000000000000000000000000000000000000000000000008152336004820152602401610260565b61039f8282610a79565b5050565b6040517f6d70f7ae00000000000000000000000000000000000000000000000000000000815273ffffffffffffffffffffffffffffffffffffffff82811660048301525f917f000000000000000000000000000000000000000000000000000000000000000090911690636d70f7ae90602401602060405180830381865afa158015610431573d5f5f3e3d5ffd5b505050506040513d601f19601f820116820180604052508101906104559190610dc1565b92915050565b5f5473ffffffffffffffffffffffffffffffffffffffff1633146104ad576040517f17a84242000000000000000000000000000000000000000000000000000000008152336004820152602401610260565b600180547fffffffffffffffffffffffff00000000000000000000000000000000000000001673ffffffffffffffffffffffffffffffffffffffff831690811790915560405133907fe5cd1c804f1c9cc6d7009e4c0fb532f0e2d8863524c3323a6b3790c3f80bf25c905f90a350565b5f5473ffffffffffffffffffffffffffffffffffffffff16331461056f576040517f17a84242000000000000000000000000000000000000000000000000000000008152336004820152602401610260565b610577610621565b61061f577f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff166386d1a69f6040518163ffffffff1660e01b81526004015f604051808303815f87803b1580156105e0575f5ffd5b505af11580156105f2573d5f5f3e3d5ffd5b50506040517f20d29efe076941f73e5574acb023c424d63cd6d3d12eb5ac3108a5eaf177daed92505f9150a15b565b5f7f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff1663961325216040518163ffffffff1660e01b8152600401602060405180830381865afa15801561068b573d5f5f3e3d5ffd5b505050506040513d601f19601f820116820180604052508101906106af9190610dc1565b905090565b5f6106be336103a3565b6106f6576040517f76c6c93a000000000000000000000000000000000000000000000000000000008152336004820152602401610260565b5f61070386868686610bc0565b8051602080830191909120604080517fff00000000000000000000000000000000000000000000000000000000000000818501523060601b7fffffffffffffffffffffffffffffffffffffffff000000000000000000000000166021820152603581018c905260558082019390935281518082039093018352607501905280519101209250905073ffffffffffffffffffffffffffffffffffffffff82163b156107ad5750610861565b5f878251602084015ff5905073ffffffffffffffffffffffffffffffffffffffff8116610809576040517f83d2279b00000000000000000000000000000000000000000000000000000000815260048101899052602401610260565b878373ffffffffffffffffffffffffffffffffffffffff167f43538694d201f241fa7ee55e7128d2f5972f817a3563dcc6e024c7dd52984f6e898989896040516108569493929190610e23565b60405180910390a350505b95945050505050565b5f7f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff1663d09edf316040518163ffffffff1660e01b8152600401602060405180830381865afa1580156108d4573d5f5f3e3d5ffd5b505050506040513d601f19601f820116820180604052508101906106af9190610e54565b5f6109908661090987878787610bc0565b8051602091820120604080517fff00000000000000000000000000000000000000000000000000000000000000818501523060601b7fffffffffffffffffffffffffffffffffffffffff0000000000000000000000001660218201526035810194909452605580850192909252805180850390920182526075909301909252815191012090565b9695505050505050565b6040517f058a628f00000000000000000000000000000000000000000000000000000000815273ffffffffffffffffffffffffffffffffffffffff82811660048301527f0000000000000000000000000000000000000000000000000000000000000000169063058a628f906024015f604051808303815f87803b158015610a20575f5ffd5b505af1158015610a32573d5f5f3e3d5ffd5b505060405173ffffffffffffffffffffffffffffffffffffffff841692507fb251079a3e59729d2256949e48e44b7959908cdf34789078b6a1462ec327672091505f90a250565b73ffffffffffffffffffffffffffffffffffffffff8216610ac6576040517fd92e233d00000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b6040517f558a729700000000000000000000000000000000000000000000000000000000815273ffffffffffffffffffffffffffffffffffffffff838116600483015282151560248301527f0000000000000000000000000000000000000000000000000000000000000000169063558a7297906044015f604051808303815f87803b158015610b54575f5ffd5b505af1158015610b66573d5f5f3e3d5ffd5b505050508173ffffffffffffffffffffffffffffffffffffffff167f1a594081ae893ab78e67d9b9e843547318164322d32c65369d78a96172d9dc8f82604051610bb4911515815260200190565b60405180910390a25050565b60605f82610bcf86602f610e9c565b610bd99190610e9c565b905061ffff811115610c2557610bf0602f82610eaf565b6040517f161728f400000000000000000000000000000000000000000000000000000000815260040161026091815260200190565b604051610c629082907f00000000000000000000000000000000000000000000000000000000000000009088908a9082908a908a90602001610ec2565b604051602081830303815290604052915050949350505050565b73ffffffffffffffffffffffffffffffffffffffff81168114610272575f5ffd5b5f60208284031215610cad575f5ffd5b8135610cb881610c7c565b9392505050565b8015158114610272575f5ffd5b5f5f60408385031215610cdd575f5ffd5b8235610ce881610c7c565b91506020830135610cf881610cbf565b809150509250929050565b5f5f83601f840112610d13575f5ffd5b50813567ffffffffffffffff811115610d2a575f5ffd5b602083019150836020828501011115610d41575f5ffd5b9250929050565b5f5f5f5f5f60608688031215610d5c575f5ffd5b85359450602086013567ffffffffffffffff811115610d79575f5ffd5b610d8588828901610d03565b909550935050604086013567ffffffffffffffff811115610da4575f5ffd5b610db088828901610d03565b969995985093965092949392505050565b5f60208284031215610dd1575f5ffd5b8151610cb881610cbf565b81835281816020850137505f602082840101525f60207fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0601f840116840101905092915050565b604081525f610e36604083018688610ddc565b8281036020840152610e49818587610ddc565b979650505050505050565b5f60208284031215610e64575f5ffd5b8151610cb881610c7c565b7f4e487b71000000000000000000000000000000000000000000000000000000005f52601160045260245ffd5b8082018082111561045557610455610e6f565b8181038181111561045557610455610e6f565b7f610000000000000000000000000000000000000000000000000000000000000081527fffff0000000000000000000000000000000000000000000000000000000000008860f01b1660018201527f3d81600a3d39f3363d3d373d3d3d363d7300000000000000000000000000000060038201527fffffffffffffffffffffffffffffffffffffffff0000000000000000000000008760601b1660148201527f5af43d82803e903d91602b57fd5bf3000000000000000000000000000000000060288201527fffff0000000000000000000000000000000000000000000000000000000000008660f01b166037820152838560398301375f848201603981015f815284868237505f9301603901928352509097965050505050505056fea164736f6c6343000825000a60c0604052306080523360a052348015610017575f5ffd5b5060805160a0516133556100785f395f8181610422015261221201525f81816106e201528181610bc2015281816112ad0152818161132d01528181611590015281816116160152818161165301528181611e610152611e9e01526133555ff3fe608060405234801561000f575f5ffd5b506004361061021b575f3560e01c806384b0196e11610123578063c45a0155116100b8578063d09edf3111610088578063ddd5e1b21161006e578063ddd5e1b21461049a578063e834a834146104ad578063e985e9c5146104cb575f5ffd5b8063d09edf311461047f578063d936cf0314610487575f5ffd5b8063c45a015514610420578063c87b56dd14610446578063c8e2e64614610459578063cd36700e1461046c575f5ffd5b806396132521116100f357806396132521146103df578063a22cb465146103e7578063b45a3c0e146103fa578063b88d4fde1461040d575f5ffd5b806384b0196e146103ac57806386d1a69f146103c7578063950bff9f146103cf57806395d89b41146103d7575f5ffd5b806342842e0e116101b35780635f1ff549116101835780636a1cd3ca116101695780636a1cd3ca146103735780636d70f7ae1461038657806370a0823114610399575f5ffd5b80635f1ff549146102bc5780636352211e14610360575f5ffd5b806342842e0e146102fe5780634408415c14610311578063558a729714610324578063589367d114610337575f5ffd5b8063095ea7b3116101ee578063095ea7b3146102a957806318160ddd146102bc57806323b872dd146102d857806323bc0d76146102eb575f5ffd5b806301ffc9a71461021f578063058a628f1461024757806306fdde031461025c578063081812fc14610271575b5f5ffd5b61023261022d366004612aad565b610513565b60405190151581526020015b60405180910390f35b61025a610255366004612b0d565b61068f565b005b6102646106de565b60405161023e9190612b74565b61028461027f366004612b86565b610750565b60405173ffffffffffffffffffffffffffffffffffffffff909116815260200161023e565b61025a6102b7366004612b9d565b610782565b60025467ffffffffffffffff165b60405190815260200161023e565b61025a6102e6366004612bc7565b61096c565b61025a6102f9366004612c4d565b610b7f565b61025a61030c366004612bc7565b610f35565b6102ca61031f366004612b86565b610f4f565b61025a610332366004612ca2565b610f77565b61034a610345366004612b86565b610fd4565b60405164ffffffffff909116815260200161023e565b61028461036e366004612b86565b61104f565b61025a610381366004612cf2565b611091565b610232610394366004612b0d565b6112aa565b6102ca6103a7366004612b0d565b6113c1565b6103b4611489565b60405161023e9796959493929190612d2b565b61025a611543565b6102ca60fa81565b61026461158c565b610232611613565b61025a6103f5366004612ca2565b611700565b610232610408366004612b86565b611821565b61025a61041b366004612e17565b61183a565b7f0000000000000000000000000000000000000000000000000000000000000000610284565b610264610454366004612b86565b611a04565b61025a610467366004612f35565b611a22565b61025a61047a366004612fc5565b611b8c565b610284611e5e565b61025a610495366004612f35565b611f46565b61025a6104a8366004613031565b6120df565b60025468010000000000000000900467ffffffffffffffff166102ca565b6102326104d9366004613054565b73ffffffffffffffffffffffffffffffffffffffff9182165f90815260076020908152604080832093909416825291909152205460ff1690565b5f7f01ffc9a7000000000000000000000000000000000000000000000000000000007fffffffff00000000000000000000000000000000000000000000000000000000831614806105a557507f80ac58cd000000000000000000000000000000000000000000000000000000007fffffffff000000000000000000000000000000000000000000000000000000008316145b806105f157507f5b5e139f000000000000000000000000000000000000000000000000000000007fffffffff000000000000000000000000000000000000000000000000000000008316145b8061063d57507fb45a3c0e000000000000000000000000000000000000000000000000000000007fffffffff000000000000000000000000000000000000000000000000000000008316145b8061068957507f49064906000000000000000000000000000000000000000000000000000000007fffffffff000000000000000000000000000000000000000000000000000000008316145b92915050565b6106976121fa565b600180547fffffffffffffffffffffffff00000000000000000000000000000000000000001673ffffffffffffffffffffffffffffffffffffffff92909216919091179055565b60607f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff16300361072f575060408051602081019091525f815290565b61074b61073e602d60026130ad565b61074661226d565b61227f565b905090565b5f61075a826122d5565b505f9081526006602052604090205473ffffffffffffffffffffffffffffffffffffffff1690565b61078a611613565b6107c0576040517fdb89e3f400000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b5f6107ca8261104f565b90503373ffffffffffffffffffffffffffffffffffffffff821614801590610822575073ffffffffffffffffffffffffffffffffffffffff81165f90815260076020908152604080832033845290915290205460ff16155b15610867576040517fce99e4c2000000000000000000000000000000000000000000000000000000008152336004820152602481018390526044015b60405180910390fd5b5f8281526004602052604090205473ffffffffffffffffffffffffffffffffffffffff8416156108b9577f010000000000000000000000000000000000000000000000000000000000000081176108dd565b7ffeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff81165b5f848152600460209081526040808320939093556006905281812080547fffffffffffffffffffffffff00000000000000000000000000000000000000001673ffffffffffffffffffffffffffffffffffffffff8881169182179092559251869392918616917f8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b92591a450505050565b610974611613565b6109aa576040517fdb89e3f400000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b5f6109b48261104f565b90508073ffffffffffffffffffffffffffffffffffffffff168473ffffffffffffffffffffffffffffffffffffffff1614610a42576040517f81fe68e600000000000000000000000000000000000000000000000000000000815273ffffffffffffffffffffffffffffffffffffffff8086166004830152602482018490528216604482015260640161085e565b610a4b8361232a565b610a99576040517f17858bbe00000000000000000000000000000000000000000000000000000000815273ffffffffffffffffffffffffffffffffffffffff8416600482015260240161085e565b3373ffffffffffffffffffffffffffffffffffffffff821614801590610aef575073ffffffffffffffffffffffffffffffffffffffff81165f90815260076020908152604080832033845290915290205460ff16155b8015610b1e57505f8281526006602052604090205473ffffffffffffffffffffffffffffffffffffffff163314155b15610b5e576040517fce99e4c20000000000000000000000000000000000000000000000000000000081523360048201526024810183905260440161085e565b5f82815260046020526040902054610b79908390838661236b565b50505050565b610b88336112aa565b610bc0576040517f76c6c93a00000000000000000000000000000000000000000000000000000000815233600482015260240161085e565b7f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff163003610c2f576040517fc99c0b9200000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b80801580610c3d575060fa81115b15610c7e576040517f25128c950000000000000000000000000000000000000000000000000000000081526004810182905260fa602482015260440161085e565b6002545f90610c989067ffffffffffffffff1660016130ad565b905080851115610cde576040517ffc7d7efc000000000000000000000000000000000000000000000000000000008152600481018690526024810182905260440161085e565b80851015610cf957610cf2858286866124d7565b5050505050565b600280547fffffffffffffffffffffffffffffffffffffffffffffffff0000000000000000167fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff8488010167ffffffffffffffff161790555f80610d8b8760067fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff919091018181049291900660280290565b915091505f815f14610daa575f83815260036020526040902054610dac565b5f5b90505f610dba8660056130c0565b67ffffffffffffffff811115610dd257610dd2612dea565b6040519080825280601f01601f191660200182016040528015610dfc576020820181803683370190505b5090507fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef88602083018b5b8915610eed575f5b5f8b1160f08914151615610e9057833564ffffffffff811181151791508115610e585750610e90565b80891b881797508060d81b84525081305f875f5fa460208401935060058301925060288801975060018201915060018b039a50610e2f565b8015610ecb576040517f1635f4d30000000000000000000000000000000000000000000000000000000081526004810183905260240161085e565b505f888152600360205260408120969096556001909701969495508594610e27565b508b7ffcb184b773025d3708d755de2e4df951d0a5dc0a95ae5714e234d384fa20daf285604051610f1e9190612b74565b60405180910390a25050505050505050505b505050565b610f3083838360405180602001604052805f81525061183a565b5f610f59826122d5565b5f8281526004602052604090205460c81c65ffffffffffff16610689565b610f7f6121fa565b73ffffffffffffffffffffffffffffffffffffffff919091165f90815260208190526040902080547fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff0016911515919091179055565b5f610fde826122d5565b5f8281526004602052604090205460a01c64ffffffffff8116156110025780611048565b6110488360067fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff919091018181045f908152600360205260409020549190066028021c90565b9392505050565b5f611059826122d5565b5f8281526004602052604090205473ffffffffffffffffffffffffffffffffffffffff8116156110895780611048565b309392505050565b61109a336112aa565b6110d2576040517f76c6c93a00000000000000000000000000000000000000000000000000000000815233600482015260240161085e565b8064ffffffffff165f03611115576040517f1635f4d30000000000000000000000000000000000000000000000000000000081526004810184905260240161085e565b5f61111f84610fd4565b90508164ffffffffff168164ffffffffff160361113c5750505050565b8264ffffffffff168164ffffffffff161461119b576040517fc897ea910000000000000000000000000000000000000000000000000000000081526004810185905264ffffffffff80831660248301528416604482015260640161085e565b5f8481526004602052604090205473ffffffffffffffffffffffffffffffffffffffff8116156111fa576040517fe3592ede0000000000000000000000000000000000000000000000000000000081526004810186905260240161085e565b5f8581526004602090815260409182902060a086901b78ffffffffff0000000000000000000000000000000000000000169055815164ffffffffff808816825286169181019190915286917f3fd8fe6525601fe28fd4d10a19340683eba8fd839162f00123ae4c88b6d37386910160405180910390a26040518581527ff8e1a15aba9398e019f0b49df1a4fde98ee17ae345cb5f6b5e2c27f5033e8ce79060200160405180910390a15050505050565b5f7f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff163014611396576040517f6d70f7ae00000000000000000000000000000000000000000000000000000000815273ffffffffffffffffffffffffffffffffffffffff83811660048301527f00000000000000000000000000000000000000000000000000000000000000001690636d70f7ae90602401602060405180830381865afa158015611372573d5f5f3e3d5ffd5b505050506040513d601f19601f8201168201806040525081019061068991906130d7565b5073ffffffffffffffffffffffffffffffffffffffff165f9081526020819052604090205460ff1690565b5f73ffffffffffffffffffffffffffffffffffffffff821661140f576040517fd92e233d00000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b3073ffffffffffffffffffffffffffffffffffffffff831603611461576002546114519067ffffffffffffffff680100000000000000008204811691166130f2565b67ffffffffffffffff1692915050565b5073ffffffffffffffffffffffffffffffffffffffff165f9081526005602052604090205490565b5f60608082808083600f463084806040519080825280602002602001820160405280156114c0578160200160208202803683370190505b50604080518082018252600b81527f736572766963652d6170690000000000000000000000000000000000000000006020808301919091528251808401909352600183527f31000000000000000000000000000000000000000000000000000000000000009083015260f89690961b9d959c509a50929850909650945092509050565b61154b6121fa565b600180547fffffffffffffffffffffff00ffffffffffffffffffffffffffffffffffffffff1674010000000000000000000000000000000000000000179055565b60607f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff1630036115dd575060408051602081019091525f815290565b5f6115e661226d565b6115f2602d60026130ad565b6115fc91906130ad565b905061160d8161074681303b613112565b91505090565b5f7f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff1630146116de577f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff1663961325216040518163ffffffff1660e01b8152600401602060405180830381865afa1580156116ba573d5f5f3e3d5ffd5b505050506040513d601f19601f8201168201806040525081019061074b91906130d7565b5060015474010000000000000000000000000000000000000000900460ff1690565b611708611613565b61173e576040517fdb89e3f400000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b73ffffffffffffffffffffffffffffffffffffffff821661178b576040517fd92e233d00000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b335f81815260076020908152604080832073ffffffffffffffffffffffffffffffffffffffff87168085529083529281902080547fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff001686151590811790915590519081529192917f17307eab39ab6107e8899845ad3d59bd9653f200f220920489ca2b5937696c31910160405180910390a35050565b5f61182b826122d5565b611833611613565b1592915050565b61184584848461096c565b73ffffffffffffffffffffffffffffffffffffffff83163b15610b79575f5f8473ffffffffffffffffffffffffffffffffffffffff16338786866040516024016118929493929190613125565b604080517fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe08184030181529181526020820180517bffffffffffffffffffffffffffffffffffffffffffffffffffffffff167f150b7a020000000000000000000000000000000000000000000000000000000017905251611913919061317f565b5f604051808303815f865af19150503d805f811461194c576040519150601f19603f3d011682016040523d82523d5f602084013e611951565b606091505b50915091508115806119ad57507f150b7a020000000000000000000000000000000000000000000000000000000061198882613195565b7fffffffff000000000000000000000000000000000000000000000000000000001614155b156119fc576040517f58c3bed400000000000000000000000000000000000000000000000000000000815273ffffffffffffffffffffffffffffffffffffffff8616600482015260240161085e565b505050505050565b6060611a0f826122d5565b505060408051602081019091525f815290565b3373ffffffffffffffffffffffffffffffffffffffff851614611a8f576040517f1ae35cca00000000000000000000000000000000000000000000000000000000815233600482015273ffffffffffffffffffffffffffffffffffffffff8516602482015260440161085e565b5f85815260046020526040902054611aa78682612649565b604080517f275eff37756bb2b38b4d7e54612ea0c1a6a19a737a05a753c7c60009844e2085602082015290810187905273ffffffffffffffffffffffffffffffffffffffff861660608201525f6080820181905260a082018690529060c001604051602081830303815290604052805190602001209050611b2c875f838888886126c0565b60028054600890611b529068010000000000000000900467ffffffffffffffff16613201565b91906101000a81548167ffffffffffffffff021916908367ffffffffffffffff160217905550611b838783886128dd565b50505050505050565b611b95336112aa565b611bcd576040517f76c6c93a00000000000000000000000000000000000000000000000000000000815233600482015260240161085e565b82818114611c11576040517fab8b67c6000000000000000000000000000000000000000000000000000000008152600481018290526024810183905260440161085e565b801580611c1e575060fa81115b15611c5f576040517f25128c950000000000000000000000000000000000000000000000000000000081526004810182905260fa602482015260440161085e565b6040805180820190915260025467ffffffffffffffff8082168352680100000000000000009091041660208201525f805b83811015611df8575f888883818110611cab57611cab61322d565b9050602002013590505f878784818110611cc757611cc761322d565b9050602002016020810190611cdc9190612b0d565b5f8381526004602052604090205490915073ffffffffffffffffffffffffffffffffffffffff811615611d5f57611d138183612966565b611d5a5760405173ffffffffffffffffffffffffffffffffffffffff83169084907f75be2831abd6aae79a392ac15bcb8110b621cc6aabfd643ba440b4857552a935905f90a35b611dea565b821580611d765750855167ffffffffffffffff1683115b80611d875750611d858261232a565b155b15611dd35760405173ffffffffffffffffffffffffffffffffffffffff83169084907f75be2831abd6aae79a392ac15bcb8110b621cc6aabfd643ba440b4857552a935905f90a3611dea565b611dde8382846128dd565b611de78561325a565b94505b505050806001019050611c90565b508015611b8357808260200151611e0f9190613291565b6002805467ffffffffffffffff9290921668010000000000000000027fffffffffffffffffffffffffffffffff0000000000000000ffffffffffffffff90921691909117905550505050505050565b5f7f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff163014611f29577f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff1663d09edf316040518163ffffffff1660e01b8152600401602060405180830381865afa158015611f05573d5f5f3e3d5ffd5b505050506040513d601f19601f8201168201806040525081019061074b91906132b1565b5060015473ffffffffffffffffffffffffffffffffffffffff1690565b5f85815260046020526040902054803373ffffffffffffffffffffffffffffffffffffffff821614611fd8573387611f7d8961104f565b6040517f81fe68e600000000000000000000000000000000000000000000000000000000815273ffffffffffffffffffffffffffffffffffffffff93841660048201526024810192909252909116604482015260640161085e565b611fe18661232a565b61202f576040517f17858bbe00000000000000000000000000000000000000000000000000000000815273ffffffffffffffffffffffffffffffffffffffff8716600482015260240161085e565b604080517f84c33cf3f7a02f380d42a54bdd8d977490e4cd20e655c1657da77b5a05bdd2906020808301919091528183018a905273ffffffffffffffffffffffffffffffffffffffff84811660608401528916608083015265ffffffffffff60c886901c1660a0830181905260c08084018a90528451808503909101815260e090930190935281519101206120c88983838a8a8a6126c0565b6120d48985858b61236b565b505050505050505050565b6120e8336112aa565b612120576040517f76c6c93a00000000000000000000000000000000000000000000000000000000815233600482015260240161085e565b6121298161232a565b612177576040517f17858bbe00000000000000000000000000000000000000000000000000000000815273ffffffffffffffffffffffffffffffffffffffff8216600482015260240161085e565b5f8281526004602052604090205461218f8183612966565b1561219957505050565b6121a38382612649565b600280546008906121c99068010000000000000000900467ffffffffffffffff16613201565b91906101000a81548167ffffffffffffffff021916908367ffffffffffffffff160217905550610f308382846128dd565b3373ffffffffffffffffffffffffffffffffffffffff7f0000000000000000000000000000000000000000000000000000000000000000161461226b576040517fb550282e00000000000000000000000000000000000000000000000000000000815233600482015260240161085e565b565b5f5f5f526002602d601e303c505f5190565b60608167ffffffffffffffff81111561229a5761229a612dea565b6040519080825280601f01601f1916602001820160405280156122c4576020820181803683370190505b509050818360208301303c92915050565b8015806122ed575060025467ffffffffffffffff1681115b15612327576040517f1742432d0000000000000000000000000000000000000000000000000000000081526004810182905260240161085e565b50565b5f73ffffffffffffffffffffffffffffffffffffffff821615801590610689575073ffffffffffffffffffffffffffffffffffffffff821630141592915050565b5f84815260046020908152604080832073ffffffffffffffffffffffffffffffffffffffff8681168881187ffeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff1679010000000000000000000000000000000000000000000000000001918716918217909255908452600590925280832080547fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff0190559082529020805460010190557f0100000000000000000000000000000000000000000000000000000000000000831615612476575f84815260066020526040902080547fffffffffffffffffffffffff00000000000000000000000000000000000000001690555b838173ffffffffffffffffffffffffffffffffffffffff168373ffffffffffffffffffffffffffffffffffffffff167fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef60405160405180910390a450505050565b835f03612512576040517f1742432d0000000000000000000000000000000000000000000000000000000081525f600482015260240161085e565b5f5b81811015610cf2575f61252782876130ad565b90505f858210612537575f61257d565b61257d8260067fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff919091018181045f908152600360205260409020549190066028021c90565b90508484848181106125915761259161322d565b90506020020160208101906125a691906132cc565b64ffffffffff168164ffffffffff161415806125c7575064ffffffffff8116155b1561263f5781818686868181106125e0576125e061322d565b90506020020160208101906125f591906132cc565b6040517ff228686a000000000000000000000000000000000000000000000000000000008152600481019390935264ffffffffff918216602484015216604482015260640161085e565b5050600101612514565b8073ffffffffffffffffffffffffffffffffffffffff8116156126b7576040517fa92145400000000000000000000000000000000000000000000000000000000081526004810184905273ffffffffffffffffffffffffffffffffffffffff8216602482015260440161085e565b610f30836122d5565b82421115612703576040517fb3fcd33e0000000000000000000000000000000000000000000000000000000081526004810184905242602482015260440161085e565b604080517f8b73c3c69bb8fe3d512ecc4cf759cc79239f7b179b0ffacaa9a75d522b39400f60208201527ffea5c90306cb4b953fbb3b68f0a7e4f6c3358e841308c46be9a0b47bc9f49650918101919091527fc89efdaa54c0f20c7adf612882df0950f5a951637e0307cdcb4c672f298b8bc660608201524660808201523060a08201525f9060c0016040516020818303038152906040528051906020012090505f81866040516020016127e99291907f190100000000000000000000000000000000000000000000000000000000000081526002810192909252602282015260420190565b6040516020818303038152906040528051906020012090505f61280d82868661299d565b905073ffffffffffffffffffffffffffffffffffffffff811615806128655750612835611e5e565b73ffffffffffffffffffffffffffffffffffffffff168173ffffffffffffffffffffffffffffffffffffffff1614155b156128a6576040517ffc613ff2000000000000000000000000000000000000000000000000000000008152600481018a90526024810189905260440161085e565b60405182908a907fb6c65ca4257f7b5353a4aa2f5af984fa8c2f56ebed1bd8d1d35ea24825d07783905f90a3505050505050505050565b5f83815260046020908152604080832073ffffffffffffffffffffffffffffffffffffffff85168681177901000000000000000000000000000000000000000000000000001790915580845260059092528083208054600101905551859230917fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef9190a4505050565b5f60c883901c65ffffffffffff16600114801561104857505073ffffffffffffffffffffffffffffffffffffffff91821691161490565b5f604182146129ad57505f611048565b5f6129bc6040602085876132e5565b6129c59161330c565b90507f7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a08111156129f8575f915050611048565b60018585856040818110612a0e57612a0e61322d565b919091013560f81c9050612a2560205f888a6132e5565b612a2e9161330c565b604080515f8152602081018083529490945260ff9092169183019190915260608201526080810183905260a0016020604051602081039080840390855afa158015612a7b573d5f5f3e3d5ffd5b50506040517fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe001519695505050505050565b5f60208284031215612abd575f5ffd5b81357fffffffff0000000000000000000000000000000000000000000000000000000081168114611048575f5ffd5b73ffffffffffffffffffffffffffffffffffffffff81168114612327575f5ffd5b5f60208284031215612b1d575f5ffd5b813561104881612aec565b5f81518084528060208401602086015e5f6020828601015260207fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0601f83011685010191505092915050565b602081525f6110486020830184612b28565b5f60208284031215612b96575f5ffd5b5035919050565b5f5f60408385031215612bae575f5ffd5b8235612bb981612aec565b946020939093013593505050565b5f5f5f60608486031215612bd9575f5ffd5b8335612be481612aec565b92506020840135612bf481612aec565b929592945050506040919091013590565b5f5f83601f840112612c15575f5ffd5b50813567ffffffffffffffff811115612c2c575f5ffd5b6020830191508360208260051b8501011115612c46575f5ffd5b9250929050565b5f5f5f60408486031215612c5f575f5ffd5b83359250602084013567ffffffffffffffff811115612c7c575f5ffd5b612c8886828701612c05565b9497909650939450505050565b8015158114612327575f5ffd5b5f5f60408385031215612cb3575f5ffd5b8235612cbe81612aec565b91506020830135612cce81612c95565b809150509250929050565b803564ffffffffff81168114612ced575f5ffd5b919050565b5f5f5f60608486031215612d04575f5ffd5b83359250612d1460208501612cd9565b9150612d2260408501612cd9565b90509250925092565b7fff000000000000000000000000000000000000000000000000000000000000008816815260e060208201525f612d6560e0830189612b28565b8281036040840152612d778189612b28565b6060840188905273ffffffffffffffffffffffffffffffffffffffff8716608085015260a0840186905283810360c0850152845180825260208087019350909101905f5b81811015612dd9578351835260209384019390920191600101612dbb565b50909b9a5050505050505050505050565b7f4e487b71000000000000000000000000000000000000000000000000000000005f52604160045260245ffd5b5f5f5f5f60808587031215612e2a575f5ffd5b8435612e3581612aec565b93506020850135612e4581612aec565b925060408501359150606085013567ffffffffffffffff811115612e67575f5ffd5b8501601f81018713612e77575f5ffd5b803567ffffffffffffffff811115612e9157612e91612dea565b6040517fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0603f7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0601f8501160116810181811067ffffffffffffffff82111715612efd57612efd612dea565b604052818152828201602001891015612f14575f5ffd5b816020840160208301375f6020838301015280935050505092959194509250565b5f5f5f5f5f60808688031215612f49575f5ffd5b853594506020860135612f5b81612aec565b935060408601359250606086013567ffffffffffffffff811115612f7d575f5ffd5b8601601f81018813612f8d575f5ffd5b803567ffffffffffffffff811115612fa3575f5ffd5b886020828401011115612fb4575f5ffd5b959894975092955050506020019190565b5f5f5f5f60408587031215612fd8575f5ffd5b843567ffffffffffffffff811115612fee575f5ffd5b612ffa87828801612c05565b909550935050602085013567ffffffffffffffff811115613019575f5ffd5b61302587828801612c05565b95989497509550505050565b5f5f60408385031215613042575f5ffd5b823591506020830135612cce81612aec565b5f5f60408385031215613065575f5ffd5b823561307081612aec565b91506020830135612cce81612aec565b7f4e487b71000000000000000000000000000000000000000000000000000000005f52601160045260245ffd5b8082018082111561068957610689613080565b808202811582820484141761068957610689613080565b5f602082840312156130e7575f5ffd5b815161104881612c95565b67ffffffffffffffff828116828216039081111561068957610689613080565b8181038181111561068957610689613080565b73ffffffffffffffffffffffffffffffffffffffff8516815273ffffffffffffffffffffffffffffffffffffffff84166020820152826040820152608060608201525f6131756080830184612b28565b9695505050505050565b5f82518060208501845e5f920191825250919050565b805160208201517fffffffff000000000000000000000000000000000000000000000000000000008116919060048210156131fa577fffffffff00000000000000000000000000000000000000000000000000000000808360040360031b1b82161692505b5050919050565b5f67ffffffffffffffff821667ffffffffffffffff810361322457613224613080565b60010192915050565b7f4e487b71000000000000000000000000000000000000000000000000000000005f52603260045260245ffd5b5f7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff820361328a5761328a613080565b5060010190565b67ffffffffffffffff818116838216019081111561068957610689613080565b5f602082840312156132c1575f5ffd5b815161104881612aec565b5f602082840312156132dc575f5ffd5b61104882612cd9565b5f5f858511156132f3575f5ffd5b838611156132ff575f5ffd5b5050820193919092039150565b80356020831015610689577fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff602084900360031b1b169291505056fea164736f6c6343000825000a"
