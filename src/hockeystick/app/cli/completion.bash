# bash completion for hockeystick
_hockeystick() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=''
  case ${COMP_WORDS[1]} in
@cases@
  esac
  [[ $COMP_CWORD -eq 1 ]] && words='@commands@ --help --version'
  COMPREPLY=( $(compgen -W "$words" -- "$cur") )
}
complete -o default -F _hockeystick hockeystick
